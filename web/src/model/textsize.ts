// How large text is: the browser's default font size, or a zoom of text alone, which may change while the page is open.
import { signal } from "@preact/signals";
import { unitFrom } from "../layout/unit";

const USUAL = 16; // px
const LONG = 100; // rem that are measured: fractions of pixels count

const size = signal(1);

/** Measured at an element, not asked of its style: browsers that zoom text alone do not say so there. */
function follow(): void {
  const probe = document.createElement("div");
  probe.className = "text-probe";
  probe.setAttribute("aria-hidden", "true");
  document.body.append(probe);
  const look = (): void => {
    const k = probe.getBoundingClientRect().width / (LONG * USUAL);
    if (k > 0) size.value = k;
  };
  look();
  new ResizeObserver(look).observe(probe);
}

follow();
unitFrom(() => size.value);
