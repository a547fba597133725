// Layouts of a partitioned GPU, drawn and as a document.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "sim/cluster/partition.h"

namespace rehearse::cli {

struct MigLayouts {
  cluster::MigDevice device;
  std::vector<cluster::MigLayout> layouts;
};

/// "|2g.20gb        |1g.10gb|       |…": a cell for each memory slice, of equal width; free slices
/// are blank.
std::string drawing_of(const cluster::MigDevice& device, const cluster::MigLayout& layout);

/// A line per layout: drawing, unused slices, what still fits.
std::string layouts_text(const MigLayouts& found);
Json layouts_json(const MigLayouts& found);
/// A row per instance.
Table layouts_table(const MigLayouts& found);

}  // namespace rehearse::cli
