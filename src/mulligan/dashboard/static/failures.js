// Failures: kinds over time, figures, dead letters and stories.

import { get, h, show, toast } from "./dom.js";
import { ago, clock, duration, fullTime, money, percent } from "./format.js";
import { act, empty, may } from "./app.js";
import { columns } from "./charts.js";

const SPANS = ["1h", "24h", "7d", "31d"];

export function failuresPage(place) {
  let since = "1h", asked = 0, timer = 0;
  const spans = h("div", { class: "chips", role: "group", "aria-label": "Span of time" });
  const chart = h("section", { class: "card" }), figures = h("div", { class: "figures" });
  const letters = h("section"), stories = h("section");
  show(place, h("div", { class: "bar-top" }, h("h1", {}, "Failures"), spans), chart, figures, letters, stories);

  async function load() {
    const mine = ++asked;
    show(spans, SPANS.map((each) => h("button", {
      type: "button", class: "chip", "aria-pressed": String(each === since), data: { key: each }, on: { click: () => { since = each; load(); } },
    }, each)));
    try {
      const [found, dead, told] = await Promise.all([get(`/api/failures?since=${since}`), get("/api/letters"), get("/api/stories")]);
      if (mine === asked) draw(found, dead.letters, told.stories);
    } catch (error) { toast(error.message, "bad"); }
  }

  const figure = (label, value, sub) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, label), sub ? h("small", {}, sub) : null);

  function draw(found, dead, told) {
    const { calls, runs } = found;
    show(chart, found.error ? h("p", { class: "notice" }, found.error) : null,
      columns(found.columns, { from: found.from, to: found.to, caption: `Failed attempts by kind, last ${since}` }) ||
      empty(`Nothing failed in the last ${since}`, found.is_counted ? "" : "Calls of guards are counted where they have a listener for it:", found.is_counted ? "" : "Guard(…, listeners=[mulligan.StoreListener()])"));
    show(figures,
      runs.runs ? [figure("success after retry, runs", percent(runs.success_after_retry), `${runs.recovered} recovered, ${runs.failed} failed`),
        figure("attempts per failing run", runs.attempts_per_call?.toFixed(1) ?? "–"), figure("waited by runs", runs.waited ? duration(runs.waited) : "–"),
        runs.cost ? figure("spent on failed attempts", money(runs.cost_of_failed), `of ${money(runs.cost)}`) : null] : null,
      calls.failures ? [figure("success after retry, calls", percent(calls.success_after_retry), `${calls.recovered.toLocaleString()} recovered, ${calls.ended.toLocaleString()} ended`),
        figure("calls that gave up", calls.exhausted.toLocaleString()), figure("attempts per failing call", calls.attempts_per_call?.toFixed(1) ?? "–"),
        figure("mean wait", calls.delay_mean === null ? "–" : calls.delay_mean < 10 ? `${calls.delay_mean.toFixed(1)}s` : duration(calls.delay_mean), `95 % below ${calls.delay_p95_below ?? "–"}s`),
        figure("breakers opened", calls.breaker_opened, `${calls.breaker_closed} closed`)] : null);
    show(letters, h("h2", {}, "Dead letters"), dead.length
      ? h("ul", { class: "stories" }, dead.map((each) => h("li", { class: "card" },
          h("h3", {}, each.function, h("small", { class: "quiet" }, ` ${each.target} · ${ago(each.at)}`)),
          h("p", {}, each.message || each.because),
          h("p", { class: "quiet" }, each.unfit ? `Cannot be replayed: ${each.unfit}` : `${each.attempts} attempts, ${each.state}`),
          may() && !each.unfit ? h("div", { class: "buttons" }, h("button", {
            type: "button", "aria-label": `Replay ${each.function}`, data: { key: each.id },
            on: { click: (event) => act(event.currentTarget, "replay", { letter: each.id }, `Make the call ${each.function} again?`).then(load) },
          }, "Replay")) : null)))
      : h("p", { class: "quiet" }, "None. Guards with dead_letters=True write calls here that they gave up on."));
    show(stories, h("h2", {}, "Stories"), told.length
      ? h("ul", { class: "stories" }, told.map((each) => h("li", { class: "card" }, h("details", {},
          h("summary", { data: { key: each.request_id } }, h("b", {}, `${each.target || "calls"}: ${each.name}`), ` ${each.ending}, ${each.attempts} attempts `,
            h("time", { class: "quiet", title: fullTime(each.at) }, clock(each.at))),
          h("p", {}, each.because),
          h("ol", {}, each.tries.map((one) => h("li", {}, `${one.status ? `${one.status} ` : ""}${one.kind}${one.message ? `: ${one.message}` : ""} `,
            h("span", { class: "quiet" }, `→ ${one.because}`))))))))
      : h("p", { class: "quiet" }, "None. Guards with a StoreListener keep the newest ones here."));
  }

  const later = () => { clearTimeout(timer); timer = setTimeout(() => place.isConnected && load(), 3000); };
  load();
  return { runs: later, targets: later, reload: load };
}
