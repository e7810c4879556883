// Losses of a score f and a target y: value, slope and curvature in f. y is -1 or +1 for the first three.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace KS_MODULE {

struct Loss {
  enum Kind { hinge, squared_hinge, logistic, squared, epsilon_insensitive, huber };
  Kind kind = hinge;
  double width = 0;                         // epsilon, or Huber's delta

  static Loss named(const std::string& name, double width) {
    const char* names[] = {"hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive", "huber"};
    for (int k = 0; k < 6; ++k)
      if (name == names[k]) return {Kind(k), width};
    throw std::invalid_argument("unknown loss '" + name + "'");
  }

  double value(double f, double y) const {
    double gap = std::max(0.0, 1 - y * f), e = std::abs(f - y);
    switch (kind) {
      case hinge: return gap;
      case squared_hinge: return gap * gap;
      case logistic: return y * f > 0 ? std::log1p(std::exp(-y * f)) : -y * f + std::log1p(std::exp(y * f));
      case squared: return 0.5 * (f - y) * (f - y);
      case epsilon_insensitive: return std::max(0.0, e - width);
      default: return e <= width ? 0.5 * e * e : width * (e - 0.5 * width);
    }
  }

  double slope(double f, double y) const {
    switch (kind) {
      case hinge: return y * f < 1 ? -y : 0.0;
      case squared_hinge: return y * f < 1 ? -2 * y * (1 - y * f) : 0.0;
      case logistic: return -y / (1 + std::exp(y * f));
      case squared: return f - y;
      case epsilon_insensitive: return f - y > width ? 1.0 : y - f > width ? -1.0 : 0.0;
      default: return std::min(std::max(f - y, -width), width);
    }
  }

  double curvature(double f, double y) const {
    double p = 1 / (1 + std::exp(-std::abs(f)));
    switch (kind) {
      case squared_hinge: return y * f < 1 ? 2.0 : 0.0;
      case logistic: return p * (1 - p);
      case squared: return 1.0;
      case huber: return std::abs(f - y) <= width ? 1.0 : 0.0;
      default: return 0.0;
    }
  }
};

}  // namespace KS_MODULE
