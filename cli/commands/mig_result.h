// The documents of `rehearse mig`: valid layouts of a partitioned GPU, and predictions of its
// slices.
#pragma once

#include <string>
#include <vector>

#include "cli/config/timed_slices.h"
#include "cli/output/document.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {

struct MigLayouts {
  cluster::MigDevice device;
  std::vector<cluster::MigLayout> layouts;
};

/// "|2g.20gb        |1g.10gb|       |…": a cell for each memory slice, of equal width; free slices
/// are blank.
std::string drawing_of(const cluster::MigDevice& device, const cluster::MigLayout& layout);

/// The screen has a row per layout (drawing, unused slices, what still fits); CSV has a row per
/// instance.
Document layouts_document(const MigLayouts& found);

Document slices_document(const MigAnswer& answer);

}  // namespace rehearse::cli
