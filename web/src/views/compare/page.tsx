export function ComparePage() {
  return <main class="page" />;
}
