// A worker: one instance of the WebAssembly module, which answers one question after the other.

import { Session, initSync } from "module/tirx";
import type { Call, Reply } from "./engine";
import { reason } from "./signals";

let session: Session | undefined;

function answer(call: Call): unknown {
  if (call.method === "start") {
    initSync({ module: call.args[0] as WebAssembly.Module });
    session = new Session();
    return null;
  }
  if (!session) throw new Error("the module is not there yet");
  const method = session[call.method] as (...args: unknown[]) => unknown;
  return method.apply(session, call.args);
}

self.onmessage = ({ data }: MessageEvent<Call>) => {
  const start = performance.now();
  let reply: Reply;
  try {
    reply = { id: data.id, value: answer(data), milliseconds: performance.now() - start };
  } catch (error) {
    reply = { id: data.id, stopped: reason(error) };
  }
  self.postMessage(reply);
};
