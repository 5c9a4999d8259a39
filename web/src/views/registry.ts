// Every page, by its name in the address. A page is one folder and one row here.
import type { ComponentType } from "preact";
import { RunPage } from "./run/page";
import { RunsPage } from "./runs/page";
import { TracePage } from "./trace/page";

export const views: { page: string; component: ComponentType }[] = [
  { page: "", component: RunsPage },
  { page: "run", component: RunPage },
  { page: "trace", component: TracePage },
];
