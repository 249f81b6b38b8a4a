import { ApiFailure } from "../api/failure";
import { bytes } from "../format/number";
import { overHttp } from "./transport";
import { UPLOAD_BYTES_MAX } from "../api/rules";

/** Uploads one file outside the queue; replaces an existing one. @throws ApiFailure */
export async function uploadOnce(key: string, file: Blob, onSent: (bytes: number) => void): Promise<void> {
  if (file.size > UPLOAD_BYTES_MAX)
    throw new ApiFailure(413, "payload_too_large", `the file is larger than ${bytes(UPLOAD_BYTES_MAX)}`);
  const sent = await overHttp({ key, file, replace: true, pack: false }, onSent, () => undefined).ended;
  if (!sent.done) throw sent.failure;
}
