// The list of runs, and one run or plan in detail.

import { get, h, link, show, toast } from "./dom.js";
import { ago, clock, duration, fullTime, money, now, plural, setNow, tokens } from "./format.js";
import { act, counter, empty, may } from "./app.js";
import { gantt } from "./charts.js";

const GROUPS = [["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["failed", "Need you"], ["done", "Done"]];
const MEMBERS = {
  running: ["new", "running"], waiting: ["waiting", "limited", "paused"], failed: ["failed", "cut off", "unreadable"], done: ["done"],
};
const PAGE = 50;
const TONES = {
  new: "working", running: "working", waiting: "wait", limited: "wait", paused: "wait", done: "good", failed: "bad",
  "cut off": "bad", unreadable: "bad", cancelled: "quiet", "not started": "quiet",
};

export const badge = (row) => h("span", { class: `badge ${TONES[row.status] || "quiet"}` },
  row.fell_short || (row.status === "new" ? "starting" : row.status));

export function runsPage(place) {
  let rows = [], total = 0, counts = {}, status = "", words = "", asked = 0, isWhole = true;
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by status" });
  const list = h("ul", { class: "runs" });
  const more = h("div", { class: "more" });
  const search = h("input", {
    type: "search", placeholder: "Search runs", "aria-label": "Search runs",
    on: { input: (event) => { words = event.target.value; clearTimeout(search.timer); search.timer = setTimeout(load, 200); } },
  });
  show(place, h("div", { class: "bar-top" }, h("h1", {}, "Runs and plans"), search), chips, list, more);

  async function load(limit = PAGE) {
    const mine = ++asked;
    const query = new URLSearchParams({ limit: Math.min(limit, 100), status, q: words });
    const found = await get(`/api/runs?${query}`);
    if (mine !== asked) return;
    setNow(found.now);
    ({ rows, total, counts } = found);
    isWhole = found.is_whole;
    draw();
  }

  async function loadMore() {
    const query = new URLSearchParams({ limit: PAGE, offset: rows.length, status, q: words });
    const found = await get(`/api/runs?${query}`);
    const known = new Set(rows.map((each) => each.id));
    rows.push(...found.rows.filter((each) => !known.has(each.id)));
    draw();
  }

  const count = (group) => (group ? MEMBERS[group] : Object.keys(counts)).reduce((sum, each) => sum + (counts[each] || 0), 0);

  function draw() {
    show(chips, GROUPS.map(([group, label]) =>
      h("button", {
        type: "button", class: "chip", "aria-pressed": String(status === group), data: { key: `chip-${group}` },
        on: { click: () => { status = group; load(); } },
      }, label, h("b", {}, `${count(group).toLocaleString()}${isWhole ? "" : "…"}`))));
    if (!rows.length) {
      show(list, h("li", { class: "alone" }, status || words
        ? empty("No run fits", "Choose another filter, or search for other words.")
        : empty("No runs yet", "Start one in a terminal, and it appears here:", "mulligan run -- claude -p 'Fix the failing test'")));
    } else {
      show(list, rows.map(rowOf));
    }
    show(more, rows.length < total
      ? h("button", { type: "button", data: { key: "more" }, on: { click: loadMore } }, `Show more of ${plural(total, "run")}`) : null);
  }

  const fits = (row) => (!status || MEMBERS[status].includes(row.status)) &&
    (!words || `${row.id} ${row.name} ${row.command}`.toLowerCase().includes(words.toLowerCase()));

  load().catch((error) => toast(error.message, "bad"));
  return {
    runs(data) {
      ({ counts } = data);
      isWhole = data.is_whole;
      if (data.is_more || !isWhole) return load(Math.max(rows.length, PAGE));
      const gone = new Set([...data.gone, ...data.rows.map((each) => each.id)]);
      const before = rows.length;
      const kept = rows.filter((each) => !gone.has(each.id));
      rows = [...data.rows.filter(fits), ...kept].slice(0, Math.max(before, PAGE));
      if (!status && !words) total = count("");
      return draw();
    },
    reload: () => load(Math.max(rows.length, PAGE)),
  };
}

function rowOf(row) {
  const title = row.name || row.prompt || row.command || row.id;
  return h("li", { class: `run ${TONES[row.status] || "quiet"}` },
    h("div", { class: "what" },
      link("runs", row.id, title),
      h("p", { class: "quiet" }, [row.program, row.id, row.name ? row.prompt || row.command : "", row.folder].filter(Boolean).join(" · "))),
    h("div", { class: "where" }, badge(row), row.is_plan ? h("span", { class: "when" }, `${row.agents_done} of ${row.agents} agents`) : null, when(row)),
    h("dl", { class: "facts" },
      fact("attempts", row.attempts), fact("cost", money(row.cost)), fact("tokens", tokens(row.tokens).replace(" tokens", ""))),
    h("div", { class: "doing" }, buttons(row)),
    row.because && row.status !== "done" ? h("p", { class: "because" }, row.because) : null);
}

const fact = (label, value) => (value || value === 0) && h("div", {}, h("dt", {}, label), h("dd", {}, String(value)));

function when(row) {
  const until = row.until ?? row.next_at;
  if (until && ["waiting", "limited"].includes(row.status)) {
    return h("span", { class: "when", title: fullTime(until) }, row.is_limit ? "resets in " : "retry in ", counter(until), ` · ${clock(until)}`);
  }
  if (["running", "new"].includes(row.status)) {
    return h("span", { class: "when", title: fullTime(row.began_at ?? row.at) }, "for ", counter(row.began_at ?? row.at, true));
  }
  return row.at ? h("time", { class: "when", title: fullTime(row.at), datetime: new Date(row.at * 1000).toISOString() }, ago(row.at)) : null;
}

function buttons(row) {
  if (!may() || row.id.includes(".")) return null;
  const title = row.name || row.id;
  const button = (name, label, isRisky) => h("button", {
    type: "button", class: isRisky ? "risky" : "", "aria-label": `${label} ${title}`, data: { key: `${name}-${row.id}` },
    on: { click: (event) => act(event.currentTarget, name, { run: row.id }, isRisky ? `Cancel ${title}? It cannot be resumed.` : "") },
  }, label);
  const is = (...some) => some.includes(row.status);
  return h("div", { class: "buttons" },
    is("waiting", "limited") && button("wake", "Wake now"),
    is("paused", "failed", "cut off") && button("resume", "Resume"),
    is("new", "running", "waiting", "paused", "limited", "failed", "cut off") && button("cancel", "Cancel", true));
}

export function runPage(place, id) {
  let shown = null, log = { attempt: 0, stream: "out", text: null, isOpen: false }, timer = 0;
  const head = h("div"), body = h("div"), logs = h("section", { class: "card", "aria-label": "Output" });
  show(place, head, body, logs);

  async function load() {
    try {
      const found = await get(`/api/runs/${encodeURIComponent(id)}`);
      setNow(found.now);
      shown = found;
      draw();
    } catch (error) {
      show(head, empty(error.status === 404 ? "There is no such run" : "It cannot be read", error.message));
      show(body);
    }
  }

  function draw() {
    const row = shown;
    const parent = id.includes(".") ? id.split(".")[0] : "";
    show(head,
      h("p", { class: "crumbs" }, h("a", { href: "#/runs", data: { key: "crumb" } }, "Runs"), parent ? [" / ", link("runs", parent, parent)] : null, ` / ${id}`),
      h("div", { class: "bar-top" }, h("h1", {}, row.name || row.prompt || row.id), badge(row), when(row), buttons(row)),
      row.because && row.status !== "done" ? h("p", { class: "because" }, row.because) : null,
      row.advice && row.status !== "done" ? h("p", { class: "advice" }, `What to do: ${row.advice}`) : null,
      h("dl", { class: "facts wide" },
        fact("program", row.program), fact("attempts", row.attempts), fact("cost", money(row.cost)), fact("tokens", tokens(row.tokens)),
        row.made_at && fact("since", clock(row.made_at)), fact("folder", row.folder), fact("session", row.session)),
      row.prompt ? h("details", { class: "prompt" }, h("summary", { data: { key: "prompt" } }, "Command and prompt"), h("pre", {}, row.command)) : null);
    const parts = [];
    if (row.phases) {
      parts.push(h("section", { class: "card", "aria-label": "Phases" }, gantt(row.phases.flatMap((phase) => phase.agents.map((agent) => ({
        label: agent.label, sub: `${phase.name} · ${agent.fell_short || agent.status}`, segments: agent.segments,
        href: agent.status === "not started" ? "" : `#/runs/${encodeURIComponent(agent.id)}`,
      }))), { caption: "Phases and agents" })));
    } else if (row.segments?.length) {
      parts.push(h("section", { class: "card", "aria-label": "Timeline" }, gantt([{ label: row.program, segments: row.segments }], { caption: "Timeline" })));
    }
    if (row.steps?.length && !row.phases) parts.push(h("section", { class: "card" }, h("h2", {}, "Attempts"), h("ol", { class: "steps" }, row.steps.map(stepOf).reverse())));
    if (row.unmade?.length) parts.push(h("section", { class: "card" }, h("h2", {}, "Not started"), h("ul", { class: "remarks" },
      row.unmade.map((each) => h("li", {}, h("time", { title: fullTime(each.at) }, clock(each.at)), ` ${each.met}: ${each.because}`)))));
    if (row.remarks?.length) parts.push(h("section", { class: "card" }, h("h2", {}, "Remarks"), h("ul", { class: "remarks" },
      row.remarks.map((each) => h("li", {}, h("time", { title: fullTime(each.at) }, clock(each.at)), ` ${each.text}`)))));
    show(body, parts);
    logs.hidden = Boolean(row.phases) || !row.attempts;
    if (!logs.hidden && !log.isOpen) drawLog();
    if (log.isOpen) loadLog();
  }

  function stepOf(step) {
    const tone = step.ended_at === null ? "working" : step.is_good ? "good" : "bad";
    const rows = [["said", step.said], ["then", step.then], ["because", step.because === step.then ? "" : step.because], ["what to do", step.advice],
      ["spent", [money(step.cost), tokens(step.tokens)].filter(Boolean).join(", ")],
      ["check", step.checks.map((each) => (each.is_good ? "verified" : `not verified: ${each.said}`)).join("; ")]];
    const how = { start: "started", resume: "resumed its session", restart: "restarted" }[step.how];
    return h("li", { class: tone },
      h("h3", {}, `Attempt ${step.attempt} `, h("span", { class: "quiet" }, `${how} ${clock(step.began_at, true)}`)),
      h("p", {}, step.ended_at === null ? (shown.status === "running" ? "It is under way." : "Its end has not been recorded.") : `${step.met} after ${duration(step.took)}${
        step.signal !== null ? `, signal ${step.signal}` : step.code !== null ? `, exit code ${step.code}` : ""}`),
      h("dl", { class: "facts stacked" }, rows.map(([label, text]) => fact(label, text))),
      h("button", { type: "button", class: "small", data: { key: `log-${step.attempt}` }, on: { click: () => openLog(step.attempt) } }, "Show its output"));
  }

  function openLog(attempt, stream = "out") {
    log = { attempt, stream, text: null, isOpen: true };
    loadLog().then(() => logs.scrollIntoView({ block: "nearest" }));
  }

  async function loadLog() {
    clearTimeout(timer);
    const { attempt, stream } = log;
    try {
      const found = await get(`/api/runs/${encodeURIComponent(id)}/log?attempt=${attempt}&stream=${stream}`);
      if (attempt !== log.attempt || stream !== log.stream) return;
      if (found.text !== log.text || found.is_cut !== log.isCut) { log.text = found.text; log.isCut = found.is_cut; drawLog(); }
    } catch (error) { log.text = ""; log.isCut = false; drawLog(); }
    if (shown?.steps?.at(-1)?.ended_at === null) timer = setTimeout(() => logs.isConnected && loadLog(), 2000);
  }

  function drawLog() {
    if (!log.isOpen) {
      show(logs, h("h2", {}, "Output"), h("button", { type: "button", data: { key: "log" }, on: { click: () => openLog(shown.attempts) } }, "Show the output of the last attempt"));
      return;
    }
    const old = logs.querySelector("pre");
    const isAtEnd = !old || old.scrollHeight - old.scrollTop - old.clientHeight < 40;
    const choose = (stream, label) => h("button", {
      type: "button", class: "chip", "aria-pressed": String(log.stream === stream), data: { key: `stream-${stream}` }, on: { click: () => openLog(log.attempt, stream) },
    }, label);
    show(logs, h("div", { class: "bar-top" }, h("h2", {}, `Output of attempt ${log.attempt}`), choose("out", "stdout"), choose("err", "stderr")),
      log.isCut ? h("p", { class: "quiet" }, `The end of it; all of it: mulligan show ${id} --log ${log.attempt}`) : null,
      log.text === null ? h("p", { class: "quiet" }, "loading") : log.text ? h("pre", { class: "log", tabindex: "0" }, log.text) : h("p", { class: "quiet" }, "It printed nothing here."));
    const pre = logs.querySelector("pre");
    if (pre && isAtEnd) pre.scrollTop = pre.scrollHeight;
    else if (pre && old) pre.scrollTop = old.scrollTop;
  }

  const mine = (name) => name === id || name === id.split(".")[0];
  load();
  return {
    runs: (data) => { if (data.is_more || [...data.gone, ...data.rows.map((each) => each.id)].some(mine)) load(); },
    reload: load,
    tick: () => { if (shown?.segments && now() % 5 < 1 && ["running", "waiting", "new"].includes(shown.status)) draw(); },
  };
}
