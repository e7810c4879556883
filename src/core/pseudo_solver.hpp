// A small symmetric system that may be singular.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace KS_MODULE {

// alpha = K^+ psi for a symmetric K, n x n (overwritten). Cholesky where the matrix is well conditioned, else the eigenvectors
// by Jacobi's rotations, those with an eigenvalue below 1e-10 of the largest left out.
class PseudoSolver {
 public:
  const std::vector<double>& solve(std::vector<double>& K, const std::vector<double>& psi) {
    n_ = psi.size();
    if (!cholesky(K, psi)) rotations(K, psi);
    return alpha_;
  }

 private:
  bool cholesky(const std::vector<double>& K, const std::vector<double>& psi) {
    L_.assign(n_ * n_, 0.0);
    for (size_t i = 0; i < n_; ++i)
      for (size_t j = 0; j <= i; ++j) {
        double s = K[i * n_ + j];
        for (size_t k = 0; k < j; ++k) s -= L_[i * n_ + k] * L_[j * n_ + k];
        if (i == j && !(s > 1e-4 * K[i * n_ + i])) return false;
        L_[i * n_ + j] = i == j ? std::sqrt(s) : s / L_[j * n_ + j];
      }
    alpha_ = psi;
    for (size_t i = 0; i < n_; ++i) {
      for (size_t k = 0; k < i; ++k) alpha_[i] -= L_[i * n_ + k] * alpha_[k];
      alpha_[i] /= L_[i * n_ + i];
    }
    for (size_t i = n_; i-- > 0;) {
      for (size_t k = i + 1; k < n_; ++k) alpha_[i] -= L_[k * n_ + i] * alpha_[k];
      alpha_[i] /= L_[i * n_ + i];
    }
    return true;
  }

  void rotations(std::vector<double>& K, const std::vector<double>& psi) {
    V_.assign(n_ * n_, 0.0);
    for (size_t i = 0; i < n_; ++i) V_[i * n_ + i] = 1;
    for (int sweep = 0; sweep < 60; ++sweep) {
      double off = 0, all = 0;
      for (size_t i = 0; i < n_; ++i)
        for (size_t j = 0; j < n_; ++j) (i == j ? all : off) += K[i * n_ + j] * K[i * n_ + j];
      if (off <= 1e-30 * all) break;
      for (size_t p = 0; p < n_; ++p)
        for (size_t q = p + 1; q < n_; ++q) rotate(K, p, q);
    }
    double largest = 0;
    for (size_t i = 0; i < n_; ++i) largest = std::max(largest, K[i * n_ + i]);
    alpha_.assign(n_, 0.0);
    for (size_t e = 0; e < n_; ++e) {
      double value = K[e * n_ + e], along = 0;
      if (!(value > 1e-10 * largest)) continue;
      for (size_t i = 0; i < n_; ++i) along += V_[i * n_ + e] * psi[i];
      for (size_t i = 0; i < n_; ++i) alpha_[i] += V_[i * n_ + e] * along / value;
    }
  }

  void rotate(std::vector<double>& K, size_t p, size_t q) {
    double kpq = K[p * n_ + q];
    if (kpq == 0) return;
    double theta = (K[q * n_ + q] - K[p * n_ + p]) / (2 * kpq);
    double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    double c = 1 / std::sqrt(t * t + 1), s = t * c;
    auto turn = [&](double& a, double& b) {
      double x = a, y = b;
      a = c * x - s * y;
      b = s * x + c * y;
    };
    for (size_t k = 0; k < n_; ++k) turn(K[k * n_ + p], K[k * n_ + q]);
    for (size_t k = 0; k < n_; ++k) turn(K[p * n_ + k], K[q * n_ + k]);
    for (size_t k = 0; k < n_; ++k) turn(V_[k * n_ + p], V_[k * n_ + q]);
  }

  size_t n_ = 0;
  std::vector<double> L_, V_, alpha_;
};

}  // namespace KS_MODULE
