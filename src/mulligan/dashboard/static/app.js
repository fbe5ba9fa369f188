// Which page is shown, the connection to the server, countdowns, and buttons that change something.

import { get, h, post, show, toast } from "./dom.js";
import { countdown, duration, now, setNow } from "./format.js";
import { runPage, runsPage } from "./runs.js";
import { targetsPage } from "./targets.js";
import { failuresPage } from "./failures.js";

const main = document.getElementById("main");
let page = {}, about = { may_change: false };

export const may = () => about.may_change;

export const empty = (title, words, command) => h("div", { class: "empty" },
  h("h2", {}, title), words ? h("p", {}, words) : null, command ? h("pre", {}, command) : null);

// A number that moves: until a time, or since one.
export const counter = (at, isSince = false) => {
  const each = h("span", { class: "counter", data: { at, since: isSince ? "1" : "" } });
  each.textContent = isSince ? duration(now() - at) : countdown(at);
  return each;
};

export async function act(button, name, body, question) {
  if (question && !window.confirm(question)) return;
  button.disabled = true;
  try {
    const done = await post(`/api/actions/${name}`, body);
    toast(done.said || `done: ${done.command}`, "good");
  } catch (error) {
    toast(error.message, "bad");
  } finally {
    button.disabled = false;
    page.reload?.();
  }
}

function route() {
  const [name = "runs", id = ""] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const place = h("div", { class: "page" });
  show(main, place);
  const known = { runs: () => (id ? runPage(place, id) : runsPage(place)), targets: () => targetsPage(place), failures: () => failuresPage(place) };
  page = (known[name] || known.runs)();
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.page === (known[name] ? name : "runs")) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  document.title = id ? `${id} · Mulligan` : `${(name || "runs").replace(/^./, (first) => first.toUpperCase())} · Mulligan`;
}

function connected(isUp, words) {
  const place = document.getElementById("link");
  place.classList.toggle("up", isUp);
  const said = document.getElementById("link-words");
  if (said.textContent !== words) said.textContent = words;
}

function listen() {
  const source = new EventSource("/api/events");
  let wasLost = false;
  const on = (event, handle) => source.addEventListener(event, (message) => handle(JSON.parse(message.data)));
  on("hello", (data) => {
    setNow(data.now);
    connected(true, about.is_read_only ? "live, read-only" : may() ? "live" : "live, to read only: open the printed link to change things");
    if (wasLost) page.reload?.();
    wasLost = false;
  });
  on("runs", (data) => page.runs?.(data));
  on("targets", (data) => page.targets?.(data));
  on("reload", () => page.reload?.());
  source.onerror = () => {
    wasLost = true;
    connected(false, "the dashboard does not answer; is it still running?");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  };
}

setInterval(() => {
  for (const each of document.querySelectorAll(".counter")) {
    const at = Number(each.dataset.at), words = each.dataset.since ? duration(now() - at) : countdown(at);
    if (each.textContent !== words) each.textContent = words;
  }
  page.tick?.();
}, 1000);

window.addEventListener("hashchange", () => { route(); main.focus({ preventScroll: true }); window.scrollTo(0, 0); });
try { about = await get("/api/about"); setNow(about.now); } catch (error) { toast(error.message, "bad"); }
route();
listen();
