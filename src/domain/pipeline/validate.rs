//! The rules of PipelineConfig.
