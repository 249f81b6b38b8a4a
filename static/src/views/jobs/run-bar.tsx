/** The run that is on, at the foot of every view of its pipeline. */
export function RunBar({ slug }: { slug: string }) {
  return <span hidden>{slug}</span>;
}
