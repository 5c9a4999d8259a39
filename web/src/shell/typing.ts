/** Keys belong to the field that is written into; a box that is ticked is none. */
export function isTyping(e: KeyboardEvent): boolean {
  const t = e.target;
  if (t instanceof HTMLInputElement && t.type === "checkbox") return e.key === " ";
  return t instanceof HTMLElement && (t.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(t.tagName));
}
