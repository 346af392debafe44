#include "reproduce/experiment.h"

namespace spillway {

std::vector<std::string> models_of(const Experiment& experiment) {
  std::vector<std::string> models{experiment.model};
  for (const ExperimentJob& job : experiment.beside) models.push_back(job.model);
  models.insert(models.end(), experiment.learned_from.begin(), experiment.learned_from.end());
  return models;
}

}  // namespace spillway
