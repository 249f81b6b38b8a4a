import { Dialog } from "../components/dialog";

export function Palette({ onClose }: { onClose: () => void; onHelp: () => void }) {
  return (
    <Dialog title="Commands" onClose={onClose}>
      <p />
    </Dialog>
  );
}
