// Icons, drawn here: no font, no file.
const paths = {
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14",
  close: "M4 4l8 8M12 4l-8 8",
  warn: "M8 2.2 14.6 13.6H1.4ZM8 6.5v3.4M8 11.6v.4",
  flatten: "M3 5.5h10M3 8h10M3 10.5h10",
  expand: "M3 3.5h10M3 8h10M3 12.5h10",
  up: "M3.5 10 8 5.5 12.5 10",
  prev: "M10 3.5 5.5 8 10 12.5",
  next: "M6 3.5 10.5 8 6 12.5",
  move: "M8 1.8v12.4M1.8 8h12.4M6 3.8l2-2 2 2M6 12.2l2 2 2-2M3.8 6l-2 2 2 2M12.2 6l2 2-2 2",
  area: "M3 5V3h2M11 3h2v2M13 11v2h-2M5 13H3v-2M6 6h4v4H6Z",
  zoom: "M6.5 11A4.5 4.5 0 1 0 6.5 2a4.5 4.5 0 0 0 0 9ZM10 10l4 4M4.5 6.5h4M6.5 4.5v4",
  fit: "M2 8h12M5 5 2 8l3 3M11 5l3 3-3 3",
  whole: "M2 3v10M14 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1",
  moon: "M13.2 9.8A5.8 5.8 0 0 1 6.2 2.8a5.8 5.8 0 1 0 7 7Z",
  auto: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12M8 4.5a3.5 3.5 0 0 1 0 7",
  help: "M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 11.6v.4M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13Z",
  copy: "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3Z",
  share: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.3 4.3L11.5 8.5M9 11.5 7.5 13a3 3 0 0 1-4.3-4.3L4.5 7.5",
  out: "M3 8h9M8.5 4.5 12 8l-3.5 3.5",
  in: "M13 8H4M7.5 4.5 4 8l3.5 3.5",
  reload: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  runs: "M2.5 3.5h11v3.5h-11ZM2.5 9h11v3.5h-11ZM5 5.3h.1M5 10.8h.1",
  compare: "M5 2.5v11M2.5 5 5 2.5 7.5 5M11 13.5v-11M8.5 11l2.5 2.5 2.5-2.5",
  gauge: "M2.5 11.5a5.8 5.8 0 1 1 11 0M8 10.5l2.6-3.4M8 11.5v.1",
  timeline: "M2.5 4h6M5.5 8h8M4 12h5",
  bulb: "M6 11.5h4M6.5 13.8h3M5.8 9.6a4 4 0 1 1 4.4 0c-.4.4-.5 1-.5 1.9H6.3c0-.9-.1-1.5-.5-1.9Z",
  tree: "M3 3h4v3H3ZM9 7h4v3H9ZM9 11.5h4v2.5H9ZM5 6v6.8h4M5 8.5h4",
  table: "M2.5 3h11v10h-11ZM2.5 6.5h11M2.5 9.7h11M6.5 6.5v6.5",
  layers: "M8 2.5 14 5.5 8 8.5 2 5.5ZM2 8.2 8 11.2 14 8.2M2 10.8 8 13.8 14 10.8",
  chip: "M4.5 4.5h7v7h-7ZM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  roof: "M2.5 13.5V2.5M2.5 13.5h11M4 11.5l4.5-6h5M10.5 9.5v.1M7.5 11v.1M12 8v.1",
  input: "M2.5 8h7M7 5.5 9.5 8 7 10.5M9 3h4.5v10H9",
  memory: "M2.5 13.5V2.5M2.5 13.5h11M4.5 11V8.5l2.5-3 2.5 2 3.5-4V11Z",
  buffers: "M2.5 3.5h5v4h-5ZM9 3.5h4.5v2H9ZM9 7h3v5.5H9ZM2.5 9h4v3.5h-4Z",
  graph: "M6 3.5a1.5 1.5 0 1 0-3 0 1.5 1.5 0 0 0 3 0ZM13 5.5a1.5 1.5 0 1 0-3 0 1.5 1.5 0 0 0 3 0ZM9 12.5a1.5 1.5 0 1 0-3 0 1.5 1.5 0 0 0 3 0ZM5 4.9l2 6.2M10.7 6.8 8.3 11.2",
  grid: "M2.5 2.5h3v3h-3ZM6.5 2.5h3v3h-3ZM10.5 2.5h3v3h-3ZM2.5 6.5h3v3h-3ZM6.5 6.5h3v3h-3ZM10.5 6.5h3v3h-3ZM2.5 10.5h3v3h-3ZM6.5 10.5h3v3h-3ZM10.5 10.5h3v3h-3Z",
  net: "M3 3h3.5v3.5H3ZM9.5 9.5H13V13H9.5ZM6.5 4.7h4.8v4.8M9.5 11.3H4.7V6.5",
  request: "M2.5 5h8M8 2.5 10.5 5 8 7.5M13.5 11h-8M8 8.5 5.5 11 8 13.5",
  bars: "M3 13.5v-5M6.4 13.5v-9M9.7 13.5v-7M13 13.5v-11",
  hash: "M6.5 2.5 5 13.5M11 2.5 9.5 13.5M3 6h10.5M2.5 10H13",
  columns: "M2.5 3h11v10h-11ZM6.2 3v10M9.8 3v10",
  download: "M8 2.5v7.5M5 7.2 8 10.2 11 7.2M3 13.5h10",
  camera: "M2.5 5h2.7l1-1.8h3.6l1 1.8h2.7v8h-11ZM8 11a2.2 2.2 0 1 0 0-4.4A2.2 2.2 0 0 0 8 11Z",
  upload: "M8 10.5V3M5 5.8 8 2.8 11 5.8M3 13.5h10",
  admin: "M3 2.8h10v4H3ZM3 9.2h10v4H3ZM5.3 4.8h.1M5.3 11.2h.1M8 4.8h3M8 11.2h3",
  info: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 7.3v3.7M8 5v.1",
  check: "M3 8.5 6.5 12 13 4.5",
  command: "M3.5 5 6.5 8 3.5 11M8.5 11.5h4.5",
  pin: "M5.5 2.5h5M6.5 2.5v4L4.5 9h7l-2-2.5v-4M8 9v5",
  measure: "M2.5 3v10M13.5 3v10M2.5 8h11M5 6 2.8 8 5 10M11 6l2.2 2L11 10",
  label: "M2.5 2.5h5.5l5.5 5.5-5.5 5.5L2.5 8ZM5.3 5.3h.1",
  rail: "M2.5 3h11v10h-11ZM6.5 3v10",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <rect class="a" x="2" y="3" width="13" height="5" rx="1.5" />
      <rect class="b" x="6" y="9.5" width="16" height="5" rx="1.5" />
      <rect class="c" x="10" y="16" width="9" height="5" rx="1.5" />
    </svg>
  );
}
