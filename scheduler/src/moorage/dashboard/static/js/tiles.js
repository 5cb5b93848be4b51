// @ts-check
/** Draws every node as a tile on a canvas: what fills it, framed by its topology domain. */

import { css } from "./colours.js";

/** @typedef {import("./types.js").Node} Node */
/** @typedef {import("./types.js").FillingPod} FillingPod */
/** @typedef {{name: string, node: Node, x: number, y: number, width: number, height: number}} Tile */
/** @typedef {{title: string, x: number, y: number, width: number, height: number}} Frame */
/** @typedef {{tiles: Tile[], frames: Frame[], height: number, named: boolean}} Layout */

const HEAD = 22;
const PAD = 8;
const GONE = 0.95;
// The widest tile where tiles are as wide as their nodes are large, in widths of equal tiles.
const WIDEST = 3;
const WIDTH_LEAST = 4;
const NEEDED = ["cpu", "memory", "pods"];
// Most nodes, width, height and gap of a tile, pixels.
const SIZES = [
  [60, 96, 72, 6],
  [250, 44, 48, 4],
  [1000, 22, 30, 3],
  [2500, 14, 20, 2],
  [Infinity, 9, 13, 2],
];

/**
 * Finds a place for every node.
 * @param {Map<string, Node>} nodes
 * @param {{domain: string, sized: string, width: number}} how
 *   domain: the label key of the frames, empty for none; sized: the resource whose capacity makes a
 *   tile wide, empty for tiles of one width; width: pixels
 * @returns {Layout}
 */
export function layout(nodes, { domain, sized, width }) {
  const [, wide, high, gap] = SIZES.find(([most]) => nodes.size <= most) ?? SIZES[4];
  /** @type {Map<string, string[]>} */
  const members = new Map();
  for (const [name, node] of nodes) {
    const title = domain ? (node.domains?.[domain] ?? "without") : "";
    const found = members.get(title);
    if (found) found.push(name);
    else members.set(title, [name]);
  }
  /** @type {Layout} */
  const made = { tiles: [], frames: [], height: 0, named: wide > 60 };
  const most = Math.max(1, ...[...nodes.values()].map((node) => node.allocatable[sized] ?? 0));
  /** @param {Node} node */
  const widthOf = (node) =>
    sized ? Math.max(WIDTH_LEAST, (WIDEST * wide * (node.allocatable[sized] ?? 0)) / most) : wide;
  let y = 0;
  for (const title of [...members.keys()].sort(byNumber)) {
    const names = (members.get(title) ?? []).sort(byNumber);
    const head = domain ? HEAD : PAD;
    let x = PAD;
    let row = 0;
    for (const name of names) {
      const node = nodes.get(name);
      if (!node) continue;
      const own = widthOf(node);
      if (x > PAD && x + own > width - PAD) {
        x = PAD;
        row += 1;
      }
      made.tiles.push({ name, node, x, y: y + head + row * (high + gap), width: own, height: high });
      x += own + gap;
    }
    const height = head + (row + 1) * (high + gap) - gap + PAD;
    if (domain) made.frames.push({ title: `${title} (${names.length})`, x: 0, y, width, height });
    y += height + PAD;
  }
  made.height = Math.max(y - PAD, 0);
  return made;
}

/** Names with their numbers by size. @param {string} a @param {string} b */
export function byNumber(a, b) {
  return collator.compare(a, b);
}

const collator = new Intl.Collator("en", { numeric: true });

/** What the pods of a node request. @param {Node} node @param {string} resource */
export function requested(node, resource) {
  const pods = node.pods ?? [];
  const others = node.others;
  if (resource === "pods") return pods.length + (others?.pods ?? 0);
  const seen = pods.reduce((sum, pod) => sum + (pod.requests?.[resource] ?? 0), 0);
  return seen + (others?.requests[resource] ?? 0);
}

/**
 * Whether what is left of a resource is of no use, because another one is gone.
 * @param {Node} node
 * @param {string} resource
 */
export function stranded(node, resource) {
  return NEEDED.some((each) => {
    const all = node.allocatable[each] ?? 0;
    return each !== resource && all > 0 && requested(node, each) >= GONE * all;
  });
}

/**
 * Draws the tiles.
 * @param {HTMLCanvasElement} canvas
 * @param {Layout} made
 * @param {{resource: string, colourOf: (pod: FillingPod) => string, chosen: string}} how
 */
export function paint(canvas, made, how) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(made.height * scale);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, made.height);
  const text = css("text");
  const line = css("line");
  pen.font = `12px ${css("font")}`;
  pen.textBaseline = "middle";
  for (const frame of made.frames) {
    pen.strokeStyle = line;
    pen.strokeRect(frame.x + 0.5, frame.y + 0.5, frame.width - 1, frame.height - 1);
    pen.fillStyle = css("quiet");
    pen.fillText(frame.title, frame.x + PAD, frame.y + HEAD / 2 + 1);
  }
  const brush = { pen, hatch: hatching(pen), empty: css("empty"), line, text, named: made.named };
  for (const tile of made.tiles) paintTile(tile, brush, how);
  const chosen = made.tiles.find((tile) => tile.name === how.chosen);
  if (chosen) {
    pen.strokeStyle = css("focus");
    pen.lineWidth = 2;
    pen.strokeRect(chosen.x - 1, chosen.y - 1, chosen.width + 2, chosen.height + 2);
    pen.lineWidth = 1;
  }
}

/**
 * @param {Tile} tile
 * @param {{pen: CanvasRenderingContext2D, hatch: CanvasPattern | null, empty: string, line: string,
 *   text: string, named: boolean}} brush
 * @param {{resource: string, colourOf: (pod: FillingPod) => string}} how
 */
function paintTile(tile, brush, how) {
  const { pen } = brush;
  const { node, x, width } = tile;
  const label = brush.named ? 18 : 0;
  const height = tile.height - label;
  const bottom = tile.y + height;
  const all = node.allocatable[how.resource] ?? 0;
  let filled = 0;
  if (all > 0) {
    pen.fillStyle = brush.empty;
    pen.fillRect(x, tile.y, width, height);
    // Pods of one colour stand together, so that a tile of ten pixels still reads.
    /** @type {Map<string, number>} */
    const parts = new Map();
    for (const pod of node.pods ?? []) {
      const part = how.resource === "pods" ? 1 : (pod.requests?.[how.resource] ?? 0);
      const colour = how.colourOf(pod);
      parts.set(colour, (parts.get(colour) ?? 0) + part);
    }
    const seen = [...parts.values()].reduce((sum, part) => sum + part, 0);
    const hidden = requested(node, how.resource) - seen;
    if (hidden > 0) parts.set(brush.text, hidden);
    for (const [colour, part] of [...parts].sort()) {
      const tall = Math.min((height * part) / all, height - filled);
      pen.fillStyle = colour;
      pen.fillRect(x, bottom - filled - tall, width, tall);
      filled += tall;
    }
    if (brush.hatch && filled < height && stranded(node, how.resource)) {
      pen.fillStyle = brush.hatch;
      pen.fillRect(x, tile.y, width, height - filled);
    }
  }
  if (all <= 0) {
    // A frame with a stroke through it: the node has none of the resource, which is not the same as
    // having all of it free.
    pen.strokeStyle = brush.line;
    pen.strokeRect(x + 0.5, tile.y + 0.5, width - 1, height - 1);
    pen.beginPath();
    pen.moveTo(x, bottom);
    pen.lineTo(x + width, tile.y);
    pen.stroke();
  }
  if (node.unschedulable) {
    pen.strokeStyle = brush.text;
    pen.setLineDash([3, 2]);
    pen.strokeRect(x + 0.5, tile.y + 0.5, width - 1, height - 1);
    pen.setLineDash([]);
  }
  if (brush.named) {
    pen.fillStyle = brush.text;
    pen.fillText(fitting(pen, tile.name, width), x, bottom + 10);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {string} text @param {number} width */
function fitting(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text;
  // The end of a name tells nodes apart.
  while (kept && pen.measureText(`…${kept}`).width > width) kept = kept.slice(1);
  return `…${kept}`;
}

/** @param {CanvasRenderingContext2D} pen */
function hatching(pen) {
  const cell = document.createElement("canvas");
  cell.width = cell.height = 6;
  const small = cell.getContext("2d");
  if (!small) return null;
  small.strokeStyle = css("quiet");
  small.beginPath();
  for (const from of [-6, 0, 6]) {
    small.moveTo(from, 6);
    small.lineTo(from + 6, 0);
  }
  small.stroke();
  return pen.createPattern(cell, "repeat");
}
