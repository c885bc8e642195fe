/** Where blocks of lines go. */
export interface BlockOutput {
  write(text: string): unknown;
  flushSync(): void;
}

/** A destination for log lines. */
export interface LineBlocks {
  write(line: string): void;
  /** Writes what waits. */
  flushSync(): void;
}

/** Lines are written at once when they have become so long together: a system call for each costs more than making it. */
const BLOCK_LENGTH = 16 * 1024;
/** A line waits no longer than this, in milliseconds. */
const MAX_WAIT_MS = 100;

/**
 * Puts lines together to blocks. SonicBoom, which pino writes through, has an option for that, but it measures the whole
 * block anew with each line.
 */
export function createLineBlocks(output: BlockOutput): LineBlocks {
  let lines: string[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | undefined;

  function writeBlock(): void {
    clearTimeout(timer);
    timer = undefined;
    const block = lines.join("");
    lines = [];
    length = 0;
    output.write(block);
  }

  return {
    write(line) {
      lines.push(line);
      length += line.length;
      if (length >= BLOCK_LENGTH) writeBlock();
      else timer ??= setTimeout(writeBlock, MAX_WAIT_MS).unref();
    },
    flushSync() {
      if (lines.length > 0) writeBlock();
      output.flushSync();
    },
  };
}
