// Measured pairs of jobs on one GPU, by the law that ships for the GPU.

#include "cli/calibrate/device_names.h"
#include "cli/validation/judge.h"
#include "models/sharing/shipped_pairs.h"

namespace rehearse::cli {
namespace {

sharing::Resident resident(Cells& cells, std::string_view job, std::string_view batch,
                           std::string_view step) {
  std::string family = cells.text(job);
  const double samples = cells.positive(batch, 1);
  return {std::move(family), samples, Seconds::s(cells.positive(step))};
}

PredictRow pairs_predictor(const CsvTable&, std::vector<std::string>&) {
  return [](Cells& cells) -> Result<Verdict> {
    const sharing::Resident job = resident(cells, "job", "batch", "step_s"),
                            other = resident(cells, "other_job", "other_batch", "other_step_s");
    const cluster::Gpu& gpu = *TRY(device_named(cells.text("device")));
    // Without measured pairs of the GPU time slicing is all that is known.
    const sharing::ShippedPairs* shipped = sharing::find_shipped_pairs(gpu.name);
    const double share =
        shipped ? shipped->law->share(job, other) : sharing::PairLaw().share(job, other);
    return Verdict{cells.positive("share"), {share, share, share, Provenance::kExtrapolated}};
  };
}

}  // namespace

const MeasurementKind kMeasuredPairs = {
    .name = "pairs",
    .method = Method::kPairs,
    .unit = "",
    .required = {"device", "job", "step_s", "other_job", "other_step_s", "share"},
    .optional = {"batch", "other_batch"},
    .predictor = pairs_predictor};

}  // namespace rehearse::cli
