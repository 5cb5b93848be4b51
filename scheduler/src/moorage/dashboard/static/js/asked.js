// @ts-check
/** Answers that are asked for when a view needs them, and asked for again when they grow old. */

import { redraw } from "./redraw.js";
import { get, said, tryOut } from "./store.js";

/** @typedef {{body: any, trouble: string, at: number, stamp: string, asking: boolean}} Asked */

const KEPT = 50;
const OLD_MILLISECONDS = 5000;

/** @type {Map<string, Asked>} */
const answers = new Map();

/**
 * The newest answer of a path; it is asked for where there is none, or an old one.
 * @param {string} path
 * @param {string} [stamp] with another one the answer is old at once
 * @returns {Asked}
 */
export function asked(path, stamp = "") {
  return newest(path, stamp, () => get(path));
}

/** The newest answer of a question about an object, as `asked` gives it. @param {import("./types.js").ObjectQuery} query */
export function askedAbout(query) {
  return newest(JSON.stringify(query), "", () => tryOut("explain-object", query));
}

/** @param {string} path @param {string} stamp @param {() => Promise<any>} read @returns {Asked} */
function newest(path, stamp, read) {
  let found = answers.get(path);
  if (!found) {
    found = { body: null, trouble: "", at: -Infinity, stamp, asking: false };
    answers.set(path, found);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value ?? "");
  }
  const old = performance.now() - found.at > OLD_MILLISECONDS || found.stamp !== stamp;
  if (old && !found.asking && !document.hidden) {
    found.stamp = stamp;
    ask(read, found);
  }
  return found;
}

/** Asks anew at once. @param {string} path */
export function askAgain(path) {
  const found = answers.get(path);
  if (found) found.at = -Infinity;
  redraw();
}

/** @param {() => Promise<any>} read @param {Asked} into */
async function ask(read, into) {
  into.asking = true;
  try {
    into.body = await read();
    into.trouble = "";
  } catch (error) {
    into.trouble = said(error);
  }
  into.at = performance.now();
  into.asking = false;
  redraw();
  // A view that still shows the answer then asks again.
  setTimeout(redraw, OLD_MILLISECONDS + 100);
}
