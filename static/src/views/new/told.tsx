/** A sentence of the service, with what stands in backticks as code. */
export function Told({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : <span key={at}>{part}</span>))}
    </>
  );
}
