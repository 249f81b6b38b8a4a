//! PipelineConfig as people write it.
