// The members of a concurrent set: the same collective, or the same sends, of all ranks of a
// program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/job/group_network.h"
#include "models/job/link_paths.h"
#include "sim/base/result.h"
#include "sim/program/program.h"

namespace rehearse::job {

/// Rank r runs on device r.
std::vector<DeviceId> devices_of(const program::Program::Group& group);

/// By program: its ranks, together with those of programs that differ from it only in the duration
/// of their compute ops and that communicate in the same groups or with the same peers (a stage on
/// several kinds of devices).
std::vector<std::vector<RankId>> ranks_of_stages(const program::Program& job);

/// The groups that these ranks have under one number, each once.
std::vector<const program::Program::Group*> groups_of(const program::Program& job,
                                                      std::span<const RankId> ranks,
                                                      std::uint32_t local);

/// The concurrent groups of two or more members among these ranks under one local group number.
Result<std::vector<ConcurrentGroup>> concurrent_groups_of(const program::Program& job,
                                                          std::span<const RankId> ranks,
                                                          std::uint32_t local, CollectiveKind kind,
                                                          Bytes size, Schedules& schedules);

/// One past the last send that goes to another peer at the same time as `first` with the same size.
/// Sends of other sizes take another time.
std::uint32_t end_of_sends(const program::RankProgram& program, std::uint32_t first);

/// The messages from each of these ranks to each of these peers.
std::vector<ConcurrentGroup> sends_of(const program::Program& job, std::span<const RankId> ranks,
                                      std::span<const std::uint32_t> peers, Bytes size);

}  // namespace rehearse::job
