//! Decides which partitions a run must rebuild.
