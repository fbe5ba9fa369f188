// Elements from data. Text is always set as text, never parsed: what agents print is hostile.

export function h(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((each) => each || each === 0));
  return element;
}

// Only paths on this page and command lines are linked, so no address comes from data.
export const link = (page, id, ...children) =>
  h("a", { href: `#/${page}/${encodeURIComponent(id)}` }, ...children);

// Replace the children of a place, keeping the keyboard's focus on what has the same key.
export function show(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export async function get(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  if (!answer.ok) throw await trouble(answer);
  return answer.json();
}

export async function post(path, body) {
  const csrf = document.querySelector("meta[name=csrf]").content;
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw await trouble(answer);
  return answer.json();
}

async function trouble(answer) {
  let said = {};
  try { said = await answer.json(); } catch { /* it is no JSON: the status says enough */ }
  const words = said.error || said.said || `the server answered ${answer.status}`;
  return Object.assign(new Error(said.hint ? `${words}; ${said.hint}` : words), { status: answer.status });
}

export function toast(words, tone = "plain") {
  const place = document.getElementById("toasts");
  const each = h("p", { class: `toast ${tone}` }, words);
  place.append(each);
  setTimeout(() => each.remove(), tone === "bad" ? 12000 : 5000);
}
