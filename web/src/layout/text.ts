// How much of a label fits.

/** The label, shortened with an ellipsis; "" where not even two letters fit. */
export function fitText(text: string, textWidth: number, room: number): string {
  if (textWidth <= room) return text;
  const per = textWidth / Math.max(1, text.length);
  const n = Math.floor(room / per - 1.5); // the ellipsis is wider than most letters
  return n < 2 ? "" : `${text.slice(0, n)}…`;
}
