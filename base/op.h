/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The contract of everything asynchronous, stated once.
 *
 * `x_start(…, callback, arg)` begins an operation and returns a handle (or NULL with `err` set, and
 * then the callback is never called).
 *   - The callback is the last parameter but for its argument.
 *   - It is called exactly once, on the loop's thread, and never before `start` has returned.
 *   - `cancel` is immediate and silent: after it the callback is not called and the handle is dead.
 *     The handle is also dead once the callback has begun.
 *   - Arguments are copied; the caller may free what it passed when `start` returns.
 *   - Every operation has a deadline; there is no waiting for ever.
 *   - Streams (http chunks, watches) call their chunk callback any number of times before the one
 *     final callback; cancel from inside any callback is allowed. */
#ifndef BASE_OP_H
#define BASE_OP_H

#endif
