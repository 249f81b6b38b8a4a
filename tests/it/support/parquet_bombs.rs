//! Malicious Parquet files that crash a reader that trusts them.

/// A file that has only this footer.
fn file(footer: &[u8]) -> Vec<u8> {
    let length = u32::try_from(footer.len()).unwrap();
    [b"PAR1", footer, &length.to_le_bytes(), b"PAR1"].concat()
}

/// Its footer claims 2^31 - 1 schema elements: a reader allocates 206 GB.
pub fn many_elements() -> Vec<u8> {
    file(&[0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07])
}

/// So many nested schema groups: a reader's stack overflows.
pub fn nested(groups: u32) -> Vec<u8> {
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut count = groups + 1;
    while count > 0x7f {
        footer.push((count & 0x7f) as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    // The root has no repetition: name `a`, one child.
    footer.extend([0x48, 1, b'a', 0x15, 0x02, 0]);
    for _ in 1..groups {
        footer.extend([0x35, 0, 0x18, 1, b'a', 0x15, 0x02, 0]);
    }
    // A leaf, no rows, no row groups.
    footer.extend([0x15, 0x02, 0x25, 0, 0x18, 1, b'a', 0]);
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    file(&footer)
}

/// All bombs, with their names.
pub fn all() -> [(&'static str, Vec<u8>); 3] {
    [
        ("2^31 - 1 elements", many_elements()),
        ("60,000 nested groups", nested(60_000)),
        ("a million nested groups", nested(1_000_000)),
    ]
}
