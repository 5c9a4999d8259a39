// On small screens the rail lies over the page, and is away unless it was asked for.
import { signal } from "@preact/signals";

export const drawer = signal(false);
