/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/file_log.h - the log file of the file store: records, the lock, and the copy in memory.
 *
 * How     Records follow each other without a head: u32 size and bytes of a key, u32 size and bytes
 *         of a value, in the machine's byte order. User keys begin with '/', deletions with "-/";
 *         "refcount/" and "cleanup/" begin with neither. The last record of a key counts.
 *
 *           tti_file_log_lock()  takes the lock of all records, then reads what others appended
 *           tti_file_log_put()   appends a record and changes the copy, under an exclusive lock
 *           tti_file_log_unlock()
 *
 *         A handle also holds a shared lock on one byte far behind the end, for as long as it is
 *         open: so a newcomer can tell whether anybody is alive.
 *
 *         The locks are open-file-description locks: one belongs to this opening of the file and
 *         goes with it, also when the process is killed, whatever else of the process opens or
 *         closes the file.
 * True    `offset` is where the first record begins that has not been read; it never lies inside
 *         one.
 * Fails   A writer that died may leave part of a record at the end: readers stop before it, the
 *         next writer cuts it off. A record that cannot be (empty key, sizes beyond the limits) is
 *         TUTTI_E_IO: the file is not ours.
 * Limits  Keys of TUTTI_STORE_KEY_MAX + 2 bytes, values of TUTTI_STORE_VALUE_MAX, looked at before they are
 *         waited for; at most one record and 64 KiB are in memory beside the copy. */
#ifndef TTI_STORE_FILE_LOG_H
#define TTI_STORE_FILE_LOG_H

#include "base/map.h"
#include "wire/buffer.h"

typedef struct tti_file_log {
    tti_port  *port;
    char      *path; /* absolute */
    int        fd;
    int64_t    offset;
    tti_map    map;     /* the copy: keys as in the file, without deletions */
    tti_buffer pending; /* bytes read behind offset that are no whole record yet */
    bool       alone;   /* nobody else had the file open when we came */
} tti_file_log;

/** Open path, making it if need be (mode 0600), and lock it exclusively; what is there has been
 * read. Somebody else's file or link, or one that others may write to, is refused unless TUTTI_AUTH is "none".
 * @errors TUTTI_E_IO, TUTTI_E_AUTH, TUTTI_E_NOMEM, TUTTI_E_TIMEOUT: nothing is open */
tutti_status tti_file_log_open(tti_file_log *log, tti_port *port, const char *path,
                               int64_t deadline_ns);
/** Close it; the lock goes too. */
void tti_file_log_close(tti_file_log *log);

/** Try to lock: exclusively, or shared with readers. *locked_out false: somebody else has it. */
tutti_status tti_file_log_try_lock(tti_file_log *log, bool exclusive, bool *locked_out);
void         tti_file_log_unlock(tti_file_log *log);

/** Append a record; under an exclusive lock. */
tutti_status tti_file_log_put(tti_file_log *log, const char *key, const void *val, size_t size);
/** Append the deletion of a user key ("/...") that the copy has. */
tutti_status tti_file_log_delete(tti_file_log *log, const char *key);

/** Whether the file has grown since the last lock, or was removed; a look without locking. */
bool tti_file_log_grew(const tti_file_log *log);
/** Whether nobody can find the file any more: others who open its path would make another one. */
bool tti_file_log_removed(const tti_file_log *log);
/** Remove the file, unless another one has its name by now; under an exclusive lock. */
void tti_file_log_unlink(const tti_file_log *log);

#endif
