// NCCL's built-in constants, as facts. Source: NVIDIA/nccl 2.30, src/graph/tuning.cc, topo.h and
// search.cc, read 2026-06. Microseconds and GB/s (10^9); triples are LL, LL128, Simple.
#pragma once

#include <array>

namespace rehearse::comm::nccl {

using Triple = std::array<double, 3>;

// By algorithm, in the order of Algorithm: ring, tree, collnet direct, collnet chain, nvls,
// nvls tree, pat.
inline constexpr std::array<Triple, 7> kBaseLatency = {{{6.6, 14.0, 8.4},
                                                        {6.8, 14.0, 8.4},
                                                        {0, 0, 0},
                                                        {0, 0, 0},
                                                        {0, 0, 0},
                                                        {0, 0, 0},
                                                        {8.0, 8.0, 8.0}}};
inline constexpr std::array<Triple, 7> kNvlinkLatency = {{{0.6, 1.9, 3.4},
                                                          {0.6, 1.25, 4.0},
                                                          {0, 0, 3.7},
                                                          {0, 0, 2.8},
                                                          {0, 0, 25},
                                                          {0, 0, 25},
                                                          {0, 0, 4.0}}};
inline constexpr std::array<Triple, 7> kPciLatency = {{{1.0, 2.5, 5.7},
                                                       {1.0, 1.9, 4.0},
                                                       {0, 0, 3.7},
                                                       {0, 0, 2.8},
                                                       {0, 0, 0},
                                                       {0, 0, 0},
                                                       {0, 0, 4.0}}};
inline constexpr std::array<Triple, 7> kNetworkLatency = {{{2.7, 4.0, 14.0},
                                                           {5.0, 8.5, 14.0},
                                                           {0, 0, 31},
                                                           {0, 0, 30},
                                                           {0, 0, 18},
                                                           {0, 0, 20.9},
                                                           {0, 0, 14}}};
/// Overhead of a network step inside a node, of Intel hosts; Simple has three times.
inline constexpr double kNetworkOverhead = 1.0;

// By generation (volta, ampere, hopper, blackwell); columns are 1 node, 2 nodes, more.
using PerGeneration = std::array<Triple, 4>;
/// On one node the row of the generation; on several that of volta with Intel, of ampere with AMD.
inline constexpr PerGeneration kLlMaxRate = {
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
// Of one channel:
inline constexpr PerGeneration kRingLl128 = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
inline constexpr PerGeneration kTreeLl128 = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
inline constexpr PerGeneration kTreeSimple = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
inline constexpr PerGeneration kNvlsTree = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};
inline constexpr std::array<double, 4> kNvlsEfficiency = {0, 0, 0.85, 0.74};

/// Multiplies the bandwidth of tree; entry i for sizes from 64 B * 2^i.
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection = {
    {{1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9}}};

/// GB/s that the search counts for one NVLink: sm70, sm80, sm90, sm100.
inline constexpr std::array<double, 4> kNvlinkRate = {20.0, 20.0, 20.6, 40.1};

// Speeds per channel that the search tries within a node, fastest first.
inline constexpr std::array<double, 13> kSpeeds = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
inline constexpr std::array<double, 11> kSpeedsHopper = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
inline constexpr std::array<double, 12> kSpeedsBlackwell = {90, 80, 70, 60, 50, 45,
                                                            40, 30, 24, 20, 19, 18};

}  // namespace rehearse::comm::nccl
