// Workers that can be stopped: each has an instance of the module, and is replaced when it stops.

import workerText from "worker:text";
import type { Session } from "module/tirx";

type Method = Exclude<keyof Session, "free" | symbol>;
export interface Call { id: number; method: Method | "start"; args: unknown[] }
export type Reply =
  | { id: number; value: unknown; milliseconds: number }
  | { id: number; stopped: string };

/** An answer that does not come, with the reason. */
export class Stopped extends Error {}

type Value<M extends Method> = Session[M] extends (...args: infer _) => infer R ? R : never;
type Arguments<M extends Method> = Session[M] extends (...args: infer A) => unknown ? A : never;

const url = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));

export class Engine {
  private worker: Worker | undefined;
  private waiting = new Map<number, { resolve: (value: never) => void; reject: (reason: Stopped) => void; timer: number }>();
  private number = 0;
  /** How long the last answer took in the worker. */
  milliseconds = 0;

  constructor(private module: Promise<WebAssembly.Module>) {}

  /** Whether a question is open. */
  get busy(): boolean {
    return this.waiting.size > 0;
  }

  /** Asks; a question that takes longer than `limit` milliseconds is given up. */
  async ask<M extends Method>(method: M, args: Arguments<M>, limit = 0): Promise<Value<M>> {
    const module = await this.module;
    if (!this.worker) {
      const worker = new Worker(url);
      this.worker = worker;
      worker.onmessage = ({ data }: MessageEvent<Reply>) => this.worker === worker && this.take(data);
      worker.onerror = () => this.worker === worker && this.stop("The worker stopped.");
      void this.send("start", [module], 0).catch(() => undefined);
    }
    return this.send(method, args, limit);
  }

  private send<T>(method: Method | "start", args: unknown[], limit: number): Promise<T> {
    const id = ++this.number;
    return new Promise<T>((resolve, reject) => {
      const late = () => this.stop(`The compiler was stopped after ${limit / 1000} seconds.`);
      const timer = limit ? setTimeout(late, limit) : 0;
      this.waiting.set(id, { resolve: resolve as (value: never) => void, reject, timer: timer as unknown as number });
      this.worker?.postMessage({ id, method, args } satisfies Call);
    });
  }

  private take(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    if (!waiting) return;
    if ("stopped" in reply) {
      this.stop(reply.stopped);
      return;
    }
    this.waiting.delete(reply.id);
    clearTimeout(waiting.timer);
    this.milliseconds = reply.milliseconds;
    waiting.resolve(reply.value as never);
  }

  /** Ends the worker; all open questions fail with the reason. The next question starts another one. */
  stop(why: string): void {
    this.worker?.terminate();
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject, timer } of waiting) {
      clearTimeout(timer);
      reject(new Stopped(why));
    }
  }
}
