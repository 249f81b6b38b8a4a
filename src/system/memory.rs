//! Memory of the machine and of this process.

/// Bytes of memory that the machine can give to processes without swapping; `None` if unknown.
pub fn available_memory() -> Option<u64> {
    meminfo_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Bytes of memory of the machine; `None` if unknown.
pub fn total_memory() -> Option<u64> {
    meminfo_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Returns freed memory to the system, which the allocator keeps otherwise.
pub fn release_memory() {
    // SAFETY: it takes no pointers, and may be called by any thread at any time (malloc_trim(3)).
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// A line such as `MemTotal:   12345 kB` of `/proc/meminfo`; the unit is 1,024 bytes.
fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:       24628512 kB\nMemFree:          312 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable:"), Some(2 << 20));
        assert_eq!(meminfo_bytes("MemTotal: 1 kB\n", "MemAvailable:"), None);
        assert_eq!(meminfo_bytes("MemAvailable: many kB\n", "MemAvailable:"), None);
    }
}
