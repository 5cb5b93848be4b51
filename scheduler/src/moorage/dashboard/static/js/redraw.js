// @ts-check
/** Draws the page anew after a view changed by itself. */
export function redraw() {
  dispatchEvent(new Event("moorage-draw"));
}
