//! A run of a pipeline: plan, convert, publish, finish.
