// Collectives as ASTRA-sim runs them: in parts that each pass one phase per dimension of the
// network.
#pragma once

#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/chakra_program.h"

namespace rehearse::ingest {

/// The program with every collective in `how.splits` parts. One that spans several dimensions, and
/// has no group of its own, becomes a chain of collectives along one dimension each:
///  - reduce_scatter from the first dimension on, all_gather from the last back, all_to_all from
///  the
///    first on with its whole size each time;
///  - all_reduce along each dimension; with `how.scatters_first` a reduce_scatter along each but
///  the
///    last, an all_reduce along that, and all_gathers back.
/// A dimension has one stream: its phases are served in their order of issue, those of all parts
/// before the next phase. Other kinds and groups with names stay whole. Bytes are what one rank
/// puts in, as the files have them (Sys::generate_collective of ASTRA-sim is the model).
ChakraProgram in_phases(const ChakraProgram& read, const AstraCollectives& how,
                        const std::vector<std::uint32_t>& dimensions);

}  // namespace rehearse::ingest
