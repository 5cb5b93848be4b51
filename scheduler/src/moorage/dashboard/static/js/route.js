// @ts-check
/** The address of the view: every choice is part of it, so it can be shared. */

/** @type {(() => void)[]} */
const listeners = [];

/** Calls a function whenever the address changes. @param {() => void} listener */
export function onRoute(listener) {
  listeners.push(listener);
}

/** The parts of the path, decoded. */
export function parts() {
  return location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
}

/** A choice in the address. @param {string} name @param {string} fallback */
export function choice(name, fallback) {
  return new URLSearchParams(location.search).get(name) ?? fallback;
}

/** Changes choices in the address; an empty value takes one out. @param {Record<string, string>} choices */
export function choose(choices) {
  const given = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(choices)) {
    if (value) given.set(name, value);
    else given.delete(name);
  }
  const query = given.toString();
  go(`${location.pathname}${query && `?${query}`}`, true);
}

/** Goes to an address of the page. @param {string} address @param {boolean} [instead] */
export function go(address, instead = false) {
  if (instead) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  for (const listener of listeners) listener();
}

addEventListener("popstate", () => {
  for (const listener of listeners) listener();
});

addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || event.button || link.origin !== location.origin) return;
  if (link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
  document.getElementById("view")?.focus();
});
