// Timelines and columns, drawn with plain elements: they scale, print and are read aloud.

import { h } from "./dom.js";
import { clock, duration, now } from "./format.js";

const WORDS = {
  working: "working", done: "done", failed: "failed attempt", limit: "waiting for a limit", retry: "waiting to retry",
};

// rows: [{label, sub, href, segments: [{tone, from, to, label}]}]
export function gantt(rows, { caption }) {
  const at = now();
  const all = rows.flatMap((row) => row.segments);
  const first = Math.min(at - 10, ...all.map((each) => each.from));
  const last = Math.max(at, first + 1, ...all.map((each) => Math.min(each.to ?? at, at + (at - first) + 3600)));
  const span = (last - first) * 1.02;
  const place = (time) => `${(100 * (Math.min(Math.max(time, first), last) - first)) / span}%`;
  const used = new Set(all.map((each) => each.tone));
  return h("figure", { class: "gantt" },
    h("figcaption", {}, caption, h("span", { class: "legend" },
      Object.entries(WORDS).filter(([tone]) => used.has(tone)).map(([tone, words]) =>
        h("span", {}, h("i", { class: `swatch ${tone}`, "aria-hidden": "true" }), words)))),
    h("ol", { class: "lanes" }, rows.map((row) =>
      h("li", {},
        h("div", { class: "lane-name" },
          row.href ? h("a", { href: row.href, data: { key: row.href } }, row.label) : h("span", {}, row.label),
          row.sub ? h("small", {}, row.sub) : null),
        h("div", { class: "lane" },
          row.segments.map((each) => {
            const to = each.to ?? at;
            const words = `${WORDS[each.tone]}${each.attempt ? `, attempt ${each.attempt}` : ""}, ${clock(each.from, true)} to ${
              each.to ? clock(each.to, true) : "now"}, ${duration(to - each.from)}${each.label ? `: ${each.label}` : ""}`;
            return h("span", {
              class: `bar ${each.tone}${each.to > at ? " ahead" : ""}`, role: "img", "aria-label": words, title: words,
              style: { left: place(each.from), width: `max(3px, ${(100 * (Math.min(to, last) - each.from)) / span}%)` },
            });
          }),
          h("span", { class: "now", "aria-hidden": "true", style: { left: place(at) } }))))),
    h("div", { class: "axis", "aria-hidden": "true" },
      [0, 1, 2, 3].map((each) => h("span", {}, clock(first + (span * each) / 3.06, span < 600)))));
}

const TONES = ["a", "b", "c", "d", "e", "f"];

// columns: [{kind: count}]
export function columns(data, { from, to, caption }) {
  const totals = {};
  for (const each of data) for (const [kind, count] of Object.entries(each)) totals[kind] = (totals[kind] || 0) + count;
  const kinds = Object.keys(totals).sort((one, two) => totals[two] - totals[one]);
  if (!kinds.length) return null;
  const shown = kinds.slice(0, 5), tone = (kind) => TONES[shown.includes(kind) ? shown.indexOf(kind) : 5];
  const most = Math.max(...data.map((each) => Object.values(each).reduce((sum, count) => sum + count, 0)));
  const width = (to - from) / data.length;
  return h("figure", { class: "columns" },
    h("figcaption", {}, caption, h("span", { class: "legend" },
      kinds.slice(0, 6).map((kind) => h("span", {}, h("i", { class: `swatch tone-${tone(kind)}`, "aria-hidden": "true" }),
        `${kind.replaceAll("_", " ")} ${totals[kind].toLocaleString()}`)))),
    h("div", { class: "bars" }, data.map((each, at) => {
      const sum = Object.values(each).reduce((total, count) => total + count, 0);
      const words = `${clock(from + at * width)}: ${sum ? Object.entries(each).map(([kind, count]) => `${count} ${kind}`).join(", ") : "none"}`;
      return h("span", { class: "column", role: "img", "aria-label": words, title: words },
        kinds.filter((kind) => each[kind]).map((kind) =>
          h("i", { class: `tone-${tone(kind)}`, style: { height: `${(100 * each[kind]) / most}%` } })));
    })),
    h("div", { class: "axis", "aria-hidden": "true" }, [0, 0.5, 1].map((share) => h("span", {}, clock(from + (to - from) * share)))));
}

// numbers: [[failures, held]]
export function sparkline(numbers) {
  const most = Math.max(1, ...numbers.map(([failed, held]) => failed + held));
  const sum = (at) => numbers.reduce((total, each) => total + each[at], 0);
  const words = `${sum(0)} failures and ${sum(1)} held attempts in the last hour`;
  return h("div", { class: "spark", role: "img", "aria-label": words, title: words },
    numbers.map(([failed, held]) => h("span", { class: "column" },
      h("i", { class: "tone-b", style: { height: `${(100 * failed) / most}%` } }),
      h("i", { class: "tone-c", style: { height: `${(100 * held) / most}%` } }))));
}
