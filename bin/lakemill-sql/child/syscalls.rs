//! Filters the system calls of a child: allowed are those that read files, compute, and use the pipes to the parent.
//!
//! Invariant: a call that is not on the list is refused, so that calls of future kernels are refused too. No allowed call
//! makes a socket, a process, another program, or a file with new content.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Calls that are allowed with any arguments.
const ALLOWED: &[c_long] = &[
    // Opening files that Landlock allows, and using the pipes.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_lseek,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_ppoll,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_membarrier,
    // Threads. `bounded` limits their creation; `clone3`, whose flags a filter can't see, is refused as missing.
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals to itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Time, randomness, identity.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
];

/// Legacy calls, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_poll,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[c_long] = &[];

/// Calls that attacks typically start with and that this program never makes: they kill the process.
const FATAL_CALLS: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_pidfd_getfd,
    libc::SYS_open_by_handle_at,
];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Refuses every other call, for this thread and those that it starts. No other thread may exist yet.
///
/// # Errors
/// The kernel refuses filters, or there are none for this architecture.
pub fn filter() -> Result<(), String> {
    let plain = |calls: &[c_long]| -> Rules { calls.iter().map(|call| (*call, Vec::new())).collect() };
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let mut allowed = plain(ALLOWED);
    allowed.extend(plain(ALLOWED_HERE));
    allowed.extend(bounded().map_err(|error| error.to_string())?);
    // The strictest result of several filters wins.
    for (rules, otherwise, matched) in [
        (plain(FATAL_CALLS), SeccompAction::Allow, SeccompAction::KillProcess),
        (plain(&[libc::SYS_clone3]), SeccompAction::Allow, errno(libc::ENOSYS)),
        (with_fatal_calls(allowed), errno(libc::EPERM), SeccompAction::Allow),
    ] {
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
        let filter = SeccompFilter::new(rules, otherwise, matched, arch).map_err(|error| error.to_string())?;
        let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
        // The last filter refuses the call by which filters are set.
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Lets the deadly calls pass the allow-list, since a refusal there would be less strict.
fn with_fatal_calls(mut allowed: Rules) -> Rules {
    allowed.extend(FATAL_CALLS.iter().map(|call| (*call, Vec::new())));
    allowed
}

/// Calls that are allowed with some arguments only.
fn bounded() -> Result<Rules, seccompiler::BackendError> {
    let is = |arg: u8, value: u64| SeccompCondition::new(arg, Length::Dword, Op::Eq, value);
    let one = |condition: SeccompCondition| SeccompRule::new(vec![condition]).map(|rule| vec![rule]);
    let thread = libc::CLONE_THREAD as u64;
    let own = u64::from(std::process::id());
    Ok(Rules::from([
        // Threads of this process, no processes.
        (libc::SYS_clone, one(SeccompCondition::new(0, Length::Qword, Op::MaskedEq(thread), thread)?)?),
        // Names of threads.
        (libc::SYS_prctl, one(is(0, libc::PR_SET_NAME as u64)?)?),
        // `abort` signals the process itself.
        (libc::SYS_tgkill, one(is(0, own)?)?),
        (libc::SYS_kill, one(is(0, own)?)?),
        // Its own limits, which it can only lower.
        (libc::SYS_prlimit64, one(is(0, 0)?)?),
    ]))
}
