// Hands a text or a picture to the browser's downloads.
export function save(name: string, type: string, text: BlobPart): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name.replace(/[^\w.@-]+/g, "_").slice(0, 120);
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
