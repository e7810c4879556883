#include "bind.hpp"
#include "calibration.hpp"

KS_GLUE_BEGIN
namespace KS_MODULE {

using Changed = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static Calibration calibration_of(Changed& ring, Changed& sorted, int64_t count, Changed& levels, Vector<double>& nominal) {
  require(ring.shape(0) >= 1 && ring.shape(0) == sorted.shape(0) && count >= 0 && levels.shape(0) == nominal.shape(0),
          "arrays of the wrong shape");
  return {ring.data(), sorted.data(), int64_t(ring.shape(0)), count, levels.data(), nominal.data(), int64_t(levels.shape(0))};
}

void bind_calibration(nb::module_& m) {
  // Learns the scores in turn, NaN being none; returns how far intervals of some coverages reached before each.
  m.def(
      "calibrate",
      [](Changed ring, Changed sorted, int64_t count, Changed levels, Vector<double> nominal, Vector<double> scores,
         Vector<double> coverages) {
        Calibration calibration = calibration_of(ring, sorted, count, levels, nominal);
        double* out;
        Made<double> reaches = make<double>({scores.shape(0), coverages.shape(0)}, &out);
        for (size_t i = 0; i < scores.shape(0); ++i) {
          for (size_t k = 0; k < coverages.shape(0); ++k) *out++ = calibration.reach(coverages(k));
          if (!std::isnan(scores(i))) calibration.learn(scores(i));
        }
        return reaches;
      },
      "ring"_a, "sorted"_a, "count"_a, "levels"_a, "nominal"_a, "scores"_a, "coverages"_a);
}

}  // namespace KS_MODULE
KS_GLUE_END
