/** An id that no other has. `crypto.randomUUID` would do, but browsers have it on secure pages alone. */
export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
