// Times in the viewer's own zone and language, durations, money.

let offset = 0; // seconds that the server's clock is ahead of this one

export const setNow = (now) => { offset = now - Date.now() / 1000; };
export const now = () => Date.now() / 1000 + offset;

export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (hours < 1) return `${minutes}m ${String(whole % 60).padStart(2, "0")}s`;
  if (days < 1) return `${hours}h ${String(minutes % 60).padStart(2, "0")}m`;
  return `${days}d ${hours % 24}h`;
}

export function countdown(until) {
  const left = until - now();
  if (left <= 0) return "due now";
  const whole = Math.ceil(left);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (parts[0] >= 48) return duration(whole);
  return parts.map((each, at) => (at ? String(each).padStart(2, "0") : String(each))).join(":").replace(/^0:0?/, "");
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

const date = (at) => new Date(at * 1000);

export function clock(at, isExact = false) {
  const words = (isExact ? exact : time).format(date(at));
  const isNear = Math.abs(at - now()) < 43200 || date(at).toDateString() === date(now()).toDateString();
  return isNear ? words : `${day.format(date(at))}, ${words}`;
}

export const fullTime = (at) => whole.format(date(at));

export function ago(at) {
  const past = now() - at;
  return past < 5 ? "just now" : `${duration(past).replace(/ \d\ds$/, "")} ago`;
}

export const money = (cost) => (cost === null || cost === undefined ? "" : `$${cost.toFixed(cost && cost < 0.005 ? 4 : 2)}`);

export function tokens(count) {
  if (!count) return "";
  if (count < 10000) return `${count.toLocaleString()} tokens`;
  return count < 999500 ? `${Math.round(count / 1000)}k tokens` : `${(count / 1e6).toFixed(1)}M tokens`;
}

export const plural = (count, word) => `${count.toLocaleString()} ${word}${count === 1 ? "" : "s"}`;
export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`);
