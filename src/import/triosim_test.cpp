#include "import/triosim.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway {
namespace {

const std::string kTensors =
    "Index,TensorID,TensorShape,TensorNumElement,TensorEachByte,TensorType,TensorStorgeid,gpuid\n"
    "0,4,\"[2, 3]\",6,4,input,5,0\n"
    "1,6,[12],12,4,weight,7,0\n"
    "2,8,[8],8,4,output,9,0\n"
    "3,10,[8],8,4,input,9,0\n"
    "4,12,[12],12,4,output,13,0\n"
    "5,14,[],0,4,other,15,0\n";
const std::string kOperators =
    "OperatorID,OperatorName,Operator_input,Operator_output,Operator_cudatime,Operator_cudatimenooverlap,InputSize,"
    "OutputSize,gpuid,stage,tpflag\n"
    "1,aten::conv2d,[4; 6; 14],[8],20,12,[6; 12; 0],[8],0,forward,1\n"
    "2,aten::view,[8],[10],2,1,[8],[8],0,forward,0\n"
    "3,aten::relu_,[10],[10],3,3,[8],[8],0,forward,0\n"
    "4,autograd::engine::evaluate_function: ConvolutionBackward0,[10; 6],[12],30,30.5,[8],[12],0,backward,1\n"
    "5,aten::_foreach_add_,[6; 12],[],5,5,[12],[],0,optimizer,0\n";

Result<Trace> import(const std::string& operators, const std::string& tensors) {
  return parse_triosim(operators, tensors, "trace.csv", "tensor.csv", "some");
}

void expect_error(std::string operators, std::string tensors, const std::string& from, const std::string& to,
                  const std::string& part) {
  for (std::string* table : {&operators, &tensors})
    if (const auto at = table->find(from); at != std::string::npos) table->replace(at, from.size(), to);
  const auto trace = import(operators, tensors);
  ASSERT_FALSE(trace) << to;
  EXPECT_TRUE(trace.error().message.contains(part)) << trace.error().message;
}

TEST(TrioSim, OperatorsBecomeKernels) {
  const auto trace = import(kOperators, kTensors);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->kernels.size(), 4u) << "a view is no kernel";
  EXPECT_EQ(trace->kernels[0].duration, Nanos{12'000});
  EXPECT_EQ(trace->kernels[0].reads.size(), 2u) << "what has no bytes is no tensor";
  EXPECT_EQ(trace->kernels[1].gap, Nanos{1'000});
  EXPECT_EQ(trace->kernels[1].writes, trace->kernels[0].writes);
  EXPECT_EQ(trace->kernels[2].duration, Nanos{30'500});
  EXPECT_EQ(trace->kernels[2].phase, Phase::backward);
  EXPECT_EQ(trace->kernels[3].phase, Phase::optimizer);
  EXPECT_EQ(trace->kernels[3].writes.size(), 2u) << "without results all may be changed";
}

TEST(TrioSim, WeightsPersistAndOthersDieAfterTheirLastUse) {
  const auto trace = import(kOperators, kTensors);
  ASSERT_TRUE(trace) << trace.error().message;
  for (const Tensor& tensor : trace->tensors) EXPECT_EQ(tensor.persistent, tensor.name == "storage7") << tensor.name;
  EXPECT_EQ(trace->kernels[0].frees, (std::vector<TensorId>{{0}}));
  EXPECT_EQ(trace->kernels[2].frees, (std::vector<TensorId>{{2}}));
}

TEST(TrioSim, ErrorsNameTheFileTheLineAndWhatToDo) {
  expect_error(kOperators, kTensors, "[4; 6; 14]", "[4; 99]", "trace.csv: line 2: the tensor 99 is not in the table");
  expect_error(kOperators, kTensors, "[4; 6; 14]", "[4; x]", "trace.csv: line 2: 'Operator_input' is no whole number");
  expect_error(kOperators, kTensors, "[4; 6; 14]", "4", "line 2: 'Operator_input' is no list");
  expect_error(kOperators, kTensors, "20,12", "20,-1", "line 2: 'Operator_cudatimenooverlap' is no time");
  expect_error(kOperators, kTensors, "20,12", "20,12,3", "line 2: it has 12 values for 11 columns");
  expect_error(kOperators, kTensors, "stage", "phase", "line 1: it names no column 'stage'");
  expect_error(kOperators, kTensors, "6,4,input", "9000000000000000000,4,input",
               "tensor.csv: line 2: the tensor has more than 2^50 bytes; make the tables again");
  expect_error(kOperators, "", "", "", "tensor.csv: line 0: the file is empty");
}

}  // namespace
}  // namespace spillway
