// Times of single layers, measured inside models, against what the description of the model, the
// laws of operations and the conditions of jobs say of them. Nothing but what is said below was
// fitted to these rows.
#pragma once

#include <filesystem>

#include "sim/base/result.h"
#include "tests/validation/studies/timed_cases.h"

namespace rehearse::cli {

/// Galvatron's layers, forward, taken for those of an A100 of 80 GB: their files do not name the
/// GPU, and 0.7 of an A100's peak is what they reach. Where kernels are short the host decides: its
/// time for a layer is the mean over the rows of BERT-large, which count as fitted.
///
/// TrioSim's convolutional networks on H100: layers of VGG-13 and passes of ResNet-50, forward and
/// backward, convolutions in TF32 and linear layers in FP32, as PyTorch has it.
///
/// Empty where the folder has neither.
Result<TimedAccuracy> measure_layer_accuracy(const std::filesystem::path& data);

std::string layer_section(const TimedAccuracy& accuracy);

}  // namespace rehearse::cli
