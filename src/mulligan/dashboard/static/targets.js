// Targets: breaker, gate, tokens, who waits; and the limits that runs have hit.

import { get, h, link, show, toast } from "./dom.js";
import { clock, fullTime, plural, setNow } from "./format.js";
import { act, counter, empty, may } from "./app.js";
import { sparkline } from "./charts.js";

const BREAKERS = { closed: "good", allowed: "wait", "half open": "wait", open: "bad", blocked: "bad" };
const GATES = { free: "good", limited: "good", opening: "wait", shut: "bad" };

export function targetsPage(place) {
  let shown = null, over = {};
  const limits = h("div"), targets = h("div");
  show(place, h("h1", {}, "Targets"), limits, targets);

  async function load() {
    try {
      [shown, over] = await Promise.all([get("/api/targets"), get("/api/failures?since=1h").then((each) => each.targets)]);
      setNow(shown.now);
      draw();
    } catch (error) { toast(error.message, "bad"); }
  }

  function draw() {
    show(limits, h("h2", {}, "Limits of runs"), shown.limits.length
      ? h("ul", { class: "cards" }, shown.limits.map(limitOf))
      : h("p", { class: "quiet" }, "No run of yours waits for a limit."));
    show(targets, h("h2", {}, "Targets of guards"), shown.error ? h("p", { class: "notice" }, shown.error) : null, shown.targets.length
      ? h("ul", { class: "cards" }, shown.targets.map(targetOf))
      : shown.has_store
        ? empty("No target has failed", "A target appears with its first failure. Successful calls write nothing.")
        : empty("No store is shown", "Guards that share a store appear here. Start the dashboard with it:", "mulligan dashboard --store sqlite:state.db"));
  }

  const button = (name, label, target, isRuns) => h("button", {
    type: "button", class: name === "block" ? "risky" : "", "aria-label": `${label} ${target.name}`, data: { key: `${name}-${target.name}-${target.scope || ""}` },
    on: { click: (event) => act(event.currentTarget, name, { target: target.name, scope: target.scope ? target.scope.slice(0, 12) : "", is_runs: isRuns },
      name === "block" ? `Block ${target.name}? ${isRuns ? "No run of it starts an attempt." : "All calls to it are refused."}` : "").then(load) },
  }, label);
  const buttons = (target, isRuns) => may() && h("div", { class: "buttons" },
    button("allow", "Allow", target, isRuns), button("reset", "Reset", target, isRuns), button("block", "Block", target, isRuns));

  const state = (label, words, tone, until) => h("p", { class: "state" }, h("span", { class: "label" }, label),
    h("span", { class: `badge ${tone}` }, words), until ? h("span", { class: "when", title: fullTime(until) }, counter(until)) : null);

  function targetOf(each) {
    const past = over[each.target];
    return h("li", { class: "card" },
      h("h3", {}, each.target, each.scope ? h("small", { class: "quiet" }, ` account ${each.scope.slice(0, 8)}`) : null),
      state("breaker", each.breaker, BREAKERS[each.breaker] || "quiet", each.breaker_until),
      state("gate", each.gate, GATES[each.gate] || "quiet", each.gate_until),
      each.limits.map((limit) => h("p", { class: "meter" },
        h("span", {}, `${Math.floor(limit.remaining).toLocaleString()}${limit.limit ? ` of ${limit.limit.toLocaleString()}` : ""} ${limit.dimension}`),
        limit.limit ? h("meter", { min: 0, max: limit.limit, low: limit.limit / 10, value: limit.remaining }) : null,
        limit.reset_at ? h("span", { class: "when" }, "resets in ", counter(limit.reset_at)) : null)),
      h("p", { class: "meter" }, h("span", {}, `${Math.round(each.tokens_left)} retry tokens left`), h("meter", { min: 0, max: 500, low: 100, value: each.tokens_left })),
      each.calls || each.waiting_retries ? h("p", {}, [each.calls ? plural(each.calls, "call") + " under way" : "", each.waiting_retries ? `${each.waiting_retries} retries wait` : ""].filter(Boolean).join(", ")) : null,
      past ? sparkline(past) : null,
      each.because ? h("p", { class: "because" }, each.because) : null,
      buttons(each, false));
  }

  function limitOf(each) {
    return h("li", { class: "card" },
      h("h3", {}, each.label, each.account ? h("small", { class: "quiet" }, ` ${each.account}`) : null),
      state(each.hand ? "by hand" : "limit", each.hand || "reached", each.hand === "allowed" ? "wait" : "bad", each.until),
      each.until ? h("p", { class: "quiet" }, `until ${clock(each.until)}`) : null,
      each.run ? h("p", {}, `met by ${each.program} `, link("runs", each.run, each.run)) : null,
      each.because ? h("p", { class: "because" }, each.because) : null,
      buttons(each, true));
  }

  load();
  return { targets: (data) => { shown = { ...shown, ...data }; draw(); }, reload: load, tick: () => {} };
}
