# Draws the CSV of the benchmarks growth/ (variable csv) into a picture (variable svg):
#   bench --benchmark_filter='growth|engine/64_streams/100000$' \
#         --benchmark_out=growth.csv --benchmark_out_format=csv
#   gnuplot -e "csv='growth.csv'; svg='docs/plots/growth.svg'" tests/bench/growth.gp
set terminal svg size 960,330 dynamic font 'sans-serif,12' background 'white'
set output svg
set datafile separator ','
set logscale xy 10
set key top left reverse Left samplen 2
set grid lc rgb '#dddddd'
set format y '%g'
set yrange [0.01:200]

# Rows of the CSV: name, iterations, real time, processor time, its unit. Here: what the name of a
# benchmark ends in, and its processor time in ms.
rows(name) = sprintf("< awk -F, '$1 ~ \"^.%s\" { gsub(/.*\\/|\"/, \"\", $1); print $1 \",\" $4 * ($5 == \"ns\" ? 1e-6 : $5 == \"us\" ? 1e-3 : 1) }' '%s'", name, csv)
stats rows('engine/64_streams/100000') using 2 nooutput
reference = STATS_max

set multiplot layout 1,3
do for [what in "ranks layers microbatches"] {
  set xlabel what
  set ylabel what eq 'ranks' ? 'time of a prediction ÷ run of 100 000 ops' : ''
  plot for [how in "plan closed messages"] rows('growth/'.what.'/'.how.'/') using 1:($2 / reference) with linespoints pt 7 ps 0.5 title how
}
