/** Images of charts. */
const TITLE_PX = 16;
const PAD_PX = 16;

const NOTE_PX = 12;

/** Draws the canvases of a chart below its title and a note, with the panel's colours. */
export async function pngOf(panel: HTMLElement, title: string, note: string): Promise<Blob | undefined> {
  const parts = [...panel.querySelectorAll<HTMLCanvasElement>(".chart-canvas canvas")];
  const [first] = parts;
  if (!first) return undefined;
  const ratio = first.width / Math.max(1, first.clientWidth);
  const look = getComputedStyle(panel);
  const image = document.createElement("canvas");
  const head = PAD_PX + TITLE_PX + PAD_PX / 2 + (note ? NOTE_PX + PAD_PX / 2 : 0);
  image.width = first.width + 2 * PAD_PX * ratio;
  image.height = first.height + (head + PAD_PX) * ratio;
  const pen = image.getContext("2d");
  if (!pen) return undefined;
  pen.fillStyle = look.backgroundColor;
  pen.fillRect(0, 0, image.width, image.height);
  pen.fillStyle = look.color;
  pen.font = `600 ${TITLE_PX * ratio}px ${look.fontFamily}`;
  pen.textBaseline = "top";
  pen.fillText(title, PAD_PX * ratio, PAD_PX * ratio, first.width);
  pen.font = `${NOTE_PX * ratio}px ${look.fontFamily}`;
  pen.fillText(note, PAD_PX * ratio, (PAD_PX + TITLE_PX + PAD_PX / 2) * ratio, first.width);
  for (const part of parts) pen.drawImage(part, PAD_PX * ratio, head * ratio);
  return new Promise((resolve) => image.toBlob((blob) => resolve(blob ?? undefined), "image/png"));
}
