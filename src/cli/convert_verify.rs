//! `qnnscope convert --verify`: which two models run, and how.

use super::CliError;
use super::convert_args::ConvertArgs;
use crate::accuracy::{Inputs, Side, SidePlace};
use crate::backends::Backend;
use crate::backends::qnn::runner::{OnnxTask, RunTask};
use crate::backends::runtime::RuntimeDir;
use crate::convert::{
    Check, ConvertError, ConvertTarget, Course, Made, Reference, TfliteReference, number_ops, verify, verify_files,
};
use crate::run::Site;
use std::path::PathBuf;
use std::sync::Arc;

/// Compares the result of converting an ONNX model or a QNN format with its source.
#[expect(clippy::too_many_arguments, reason = "everything that the conversion had, and what came of it")]
pub async fn check(
    args: &ConvertArgs,
    made: &Made,
    target: ConvertTarget,
    run: &RunTask,
    inputs: &Inputs,
    site: &Arc<Site>,
    global: &super::Global,
    course: &Course<'_>,
) -> Result<Vec<Check>, CliError> {
    let Site::Here { runtime, .. } = &**site else { return Ok(Vec::new()) };
    // The reference of an ONNX model is ONNX Runtime's own kernels; that of QNN's formats is the same
    // backend, uncompiled.
    let source = RunTask { onnx: run.onnx.clone().map(|onnx| OnnxTask { reference: true, ..onnx }), ..run.clone() };
    if target == ConvertTarget::Dlc {
        let reference = Reference::Onnx(Box::new(Side {
            onnx: source.onnx,
            ..side(args, runtime, Backend::Cpu, run.model.clone())
        }));
        return Ok(Box::pin(dlcs(args, runtime, &reference, &made.files, inputs, course)).await);
    }
    let Some(file) = made.files.first() else { return Ok(Vec::new()) };
    let result = args.task(args.backend, file, site, global)?;
    // An EPContext model has no free dimensions left, and its options only applied to creating it.
    let result = RunTask {
        onnx: result.onnx.map(|onnx| OnnxTask { dimensions: Vec::new(), options: Vec::new(), ..onnx }),
        ..result
    };
    let work = verify(&source, &result, inputs, args.patience.limits());
    let check = course.take("running source and result", work).await?;
    if let Some(map) = &made.names {
        number_ops(map, &check.htp_ops)?;
    }
    Ok(vec![check])
}

/// Compares the DLCs of a TFLite model with the TFLite interpreter.
pub async fn check_tflite(
    args: &ConvertArgs,
    runtime: &RuntimeDir,
    python: PathBuf,
    files: &[PathBuf],
    inputs: &Inputs,
    course: &Course<'_>,
) -> Vec<Check> {
    let reference = Reference::Tflite(Box::new(TfliteReference { python, model: args.model.clone() }));
    Box::pin(dlcs(args, runtime, &reference, files, inputs, course)).await
}

/// If a DLC's types run everywhere, it runs on the CPU backend; otherwise on its target.
async fn dlcs(
    args: &ConvertArgs,
    runtime: &RuntimeDir,
    reference: &Reference,
    files: &[PathBuf],
    inputs: &Inputs,
    course: &Course<'_>,
) -> Vec<Check> {
    let tell = |text: &str| course.begin(text);
    let on = async |backend: Backend, files: &[PathBuf]| {
        verify_files(reference, files, &|file| side(args, runtime, backend, file), inputs, &tell).await
    };
    let work = async {
        if runtime.library("cpu").is_none() {
            return on(args.backend, files).await;
        }
        let mut checks = on(Backend::Cpu, files).await;
        if args.backend != Backend::Cpu {
            for check in checks.iter_mut().filter(|check| check.verified.is_err()) {
                let again = on(args.backend, std::slice::from_ref(&check.file)).await;
                if let Some(again) = again.into_iter().find(|again| again.verified.is_ok()) {
                    *check = again;
                }
            }
        }
        checks
    };
    course.take("running source and result", Box::pin(work)).await
}

/// A model whose tensors are read.
pub fn side(args: &ConvertArgs, runtime: &RuntimeDir, backend: Backend, model: PathBuf) -> Side {
    Side {
        model,
        backend,
        runtime_dir: runtime.path.clone(),
        place: SidePlace::Here,
        sha256: None,
        graph: None,
        onnx: None,
        settings: Vec::new(),
        allow_unknown_runtime: false,
        limits: args.patience.limits(),
    }
}

/// The ops of DLCs, and how the operators of a TFLite model map to them.
///
/// # Errors
/// The map cannot be written.
pub async fn name_tflite(
    args: &ConvertArgs,
    runtime: &RuntimeDir,
    made: &mut Made,
    course: &Course<'_>,
) -> Result<(), ConvertError> {
    let mut ops = Vec::new();
    for file in &made.files {
        let side = side(args, runtime, Backend::Htp, file.clone());
        // The files are valid even without the names.
        if let Ok((_, graph)) = course.take("reading the names of its ops", side.read()).await {
            ops.extend(graph.ops);
        }
    }
    made.names = crate::convert::keep_names(&args.model, &made.files, &ops, &args.output)?;
    Ok(())
}
