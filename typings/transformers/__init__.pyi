"""The names of transformers that the package uses, from the modules that define them.

The real `__init__` imports every model there is, and the type checker would read 4,000 files
of them to know these names. Their types are the real ones; a new name needs a line here.
"""

from transformers.configuration_utils import PretrainedConfig as PretrainedConfig
from transformers.modeling_utils import AttentionInterface as AttentionInterface
from transformers.modeling_utils import PreTrainedModel as PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING as CONFIG_MAPPING
from transformers.models.auto.configuration_auto import AutoConfig as AutoConfig
from transformers.models.auto.feature_extraction_auto import (
    AutoFeatureExtractor as AutoFeatureExtractor,
)
from transformers.models.auto.image_processing_auto import (
    AutoImageProcessor as AutoImageProcessor,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING as MODEL_FOR_CAUSAL_LM_MAPPING,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_MASKED_LM_MAPPING as MODEL_FOR_MASKED_LM_MAPPING,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING as MODEL_MAPPING
from transformers.models.auto.tokenization_auto import AutoTokenizer as AutoTokenizer
from transformers.models.bert.tokenization_bert import BertTokenizer as BertTokenizer
from transformers.models.vit.image_processing_pil_vit import (
    ViTImageProcessorPil as ViTImageProcessorPil,
)
from transformers.tokenization_utils_base import BatchEncoding as BatchEncoding
from transformers.tokenization_utils_base import (
    PreTrainedTokenizerBase as PreTrainedTokenizerBase,
)
from transformers.tokenization_utils_tokenizers import (
    PreTrainedTokenizerFast as PreTrainedTokenizerFast,
)
from transformers.trainer import Trainer as Trainer
from transformers.trainer_callback import TrainerCallback as TrainerCallback
from transformers.trainer_callback import TrainerControl as TrainerControl
from transformers.trainer_callback import TrainerState as TrainerState
from transformers.training_args import TrainingArguments as TrainingArguments

__version__: str
