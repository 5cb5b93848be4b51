// @ts-check
/** What the page knows: loaded once, then kept up to date by server-sent events. */

/** @typedef {import("./types.js").Node} Node */
/** @typedef {import("./types.js").WaitingPod} WaitingPod */
/** @typedef {import("./types.js").Group} Group */
/** @typedef {import("./types.js").Decision} Decision */
/** @typedef {import("./types.js").About} About */
/** @typedef {import("./types.js").Shown} Shown */

const DECISIONS_KEPT = 500;
const AGAIN_MILLISECONDS = 2000;
// The server says something every five seconds, so a connection this silent is gone.
const SILENT_MILLISECONDS = 15000;

export const store = {
  /** @type {About | null} */
  about: null,
  /** @type {Map<string, Node>} */
  nodes: new Map(),
  /** @type {Map<string, WaitingPod>} */
  pods: new Map(),
  /** @type {Record<string, number>} */
  sizes: {},
  /** @type {Group[]} */
  groups: [],
  /** @type {Decision[]} newest first */
  decisions: [],
  version: 0,
  time: "",
  scheduling: true,
  /** Whether everything was loaded once. */
  loaded: false,
  /** Why nothing newer is known; empty while all is well. */
  trouble: "",
  /** Why the page itself is cut off; empty while it is connected. */
  cut: "",
};

/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {EventSource | null} */
let stream = null;
let begun = 0;
/** When the server was heard last, milliseconds of `performance.now`. */
let heard = 0;

/** Calls a function after each change. @param {() => void} listener */
export function onChange(listener) {
  listeners.add(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

/** How many pods wait, or are on their way to a node. */
export function waitingPods() {
  return Object.values(store.sizes).reduce((sum, each) => sum + each, 0);
}

/** Loads everything and follows the changes; begins anew whenever that breaks. */
export async function connect() {
  const number = ++begun;
  stream?.close();
  try {
    const signal = AbortSignal.timeout(2 * SILENT_MILLISECONDS);
    const [about, state] = await Promise.all([get("/page/v1/about", signal), get("/page/v1/state", signal)]);
    store.about = about;
    take(state);
  } catch (error) {
    store.cut = said(error);
    changed();
    setTimeout(connect, AGAIN_MILLISECONDS);
    return;
  }
  store.cut = "";
  store.loaded = true;
  changed();
  if (number === begun) follow();
}

setInterval(() => {
  if (stream?.readyState !== EventSource.OPEN || performance.now() - heard < SILENT_MILLISECONDS) return;
  stream.close();
  store.cut = `nothing has come for ${SILENT_MILLISECONDS / 1000} seconds`;
  changed();
  connect();
}, AGAIN_MILLISECONDS);

function follow() {
  stream = new EventSource(`/page/v1/changes?since=${store.version}`);
  stream.onmessage = (message) => {
    heard = performance.now();
    store.cut = "";
    take(JSON.parse(message.data));
    changed();
  };
  stream.onopen = () => {
    heard = performance.now();
    if (store.cut) {
      store.cut = "";
      changed();
    }
  };
  stream.addEventListener("anew", connect);
  stream.addEventListener("time", (message) => {
    heard = performance.now();
    store.time = message.data;
    changed();
  });
  stream.onerror = () => {
    store.cut = "the program that serves this page does not answer";
    changed();
    // The browser tries again by itself, unless it was refused.
    if (stream?.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MILLISECONDS);
  };
}

/** Takes in everything, or what changed. @param {Shown} shown */
export function take(shown) {
  if (shown.whole) {
    store.nodes = new Map();
    store.pods = new Map();
    store.decisions = [];
  }
  store.version = shown.version ?? 0;
  store.time = shown.time ?? store.time;
  store.scheduling = shown.scheduling ?? true;
  store.trouble = shown.trouble ?? "";
  for (const [name, node] of Object.entries(shown.nodes ?? {})) store.nodes.set(name, node);
  for (const name of shown.gone ?? []) store.nodes.delete(name);
  for (const [uid, pod] of Object.entries(shown.pods ?? {})) {
    store.pods.set(uid, { ...pod, moved: !shown.whole && store.pods.get(uid)?.queue !== pod.queue });
  }
  for (const uid of shown.left ?? []) store.pods.delete(uid);
  if (shown.sizes) store.sizes = shown.sizes;
  if (shown.groups) store.groups = shown.groups;
  takeDecisions(shown.decisions ?? []);
}

/** @param {Decision[]} newer */
function takeDecisions(newer) {
  if (!newer.length) return;
  const known = new Map(store.decisions.map((each) => [each.number, each]));
  for (const each of newer) known.set(each.number, each);
  store.decisions = [...known.values()].sort((a, b) => b.number - a.number).slice(0, DECISIONS_KEPT);
}

/**
 * Asks for JSON.
 * @param {string} path
 * @param {AbortSignal} [signal] ends the wait
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  return answered(await fetch(path, { credentials: "same-origin", signal }));
}

/**
 * Changes the sandbox.
 * @param {string} act
 * @param {object} body
 * @returns {Promise<any>}
 */
export async function perform(act, body) {
  return post(`/page/v1/acts/${act}`, JSON.stringify(body));
}

/**
 * Tries changes; nothing is written.
 * @param {string} question
 * @param {object} body
 * @returns {Promise<any>}
 */
export async function tryOut(question, body) {
  return post(`/moorage/v1/${question}`, JSON.stringify(body));
}

/** The objects of a text, YAML or JSON. @param {string} text @returns {Promise<object[]>} */
export async function manifestsOf(text) {
  return (await post("/page/v1/manifests", text, "application/yaml")).manifests;
}

/** @param {string} path @param {string} body @param {string} [type] @returns {Promise<any>} */
async function post(path, body, type = "application/json") {
  const headers = { "X-Moorage-Csrf": store.about?.csrf ?? "", "Content-Type": type };
  return answered(await fetch(path, { method: "POST", headers, body }));
}

/** Whether the page may do something. @param {string} act */
export function can(act) {
  return store.about?.acts.includes(act) ?? false;
}

/** @param {Response} response */
async function answered(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  let message = text.trim().replace(/\.$/, "");
  try {
    message = JSON.parse(text).message ?? message;
  } catch {
    // A refusal of the page itself is plain text.
  }
  throw new Error(message || `HTTP status ${response.status}`);
}

/** Returns a failure in words. @param {unknown} error */
export function said(error) {
  return error instanceof Error ? error.message : String(error);
}
