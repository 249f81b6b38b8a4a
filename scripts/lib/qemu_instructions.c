/* Counts the instructions that qemu-user runs: a plugin, which prints the number when the program ends.
 *
 * Debian has no header of qemu's plugin interface, so that what is used of it (version 1) is declared here.
 */
#include <inttypes.h>
#include <stdio.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*end_cb)(qemu_plugin_id_t, void *);
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_cb);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, end_cb, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern void qemu_plugin_outs(const char *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* Added to without a lock: exact for one thread. */
static uint64_t instructions;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &instructions,
                                             qemu_plugin_tb_n_insns(block));
}

static void ended(qemu_plugin_id_t id, void *nothing) {
    char line[64];
    (void)id, (void)nothing;
    snprintf(line, sizeof line, "instructions: %" PRIu64 "\n", instructions);
    qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
                                                               char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
